//! A CONNECT proxy that counts its tunnels, and can let those that are open carry nothing any more, without closing them: as
//! a firewall does that has forgotten a connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A running proxy, of threads that end with the process.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    tunnels: Mutex<Vec<String>>,
    /// How many of the tunnels carry nothing.
    silenced: AtomicUsize,
}

impl Proxy {
    /// Listens on loopback. Every tunnel leads to `instead` if that is given, whatever was asked for.
    ///
    /// # Errors
    /// The machine has no port.
    pub fn start(instead: Option<String>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let (port, seen) = (listener.local_addr()?.port(), Arc::<Seen>::default());
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (seen, instead) = (Arc::clone(&shared), instead.clone());
                thread::spawn(move || tunnel(&client, instead.as_deref(), &seen));
            }
        });
        Ok(Self { port, seen })
    }

    /// Returns the address on which it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the target of each tunnel that was opened: `host:port`.
    pub fn tunnels(&self) -> Vec<String> {
        self.seen.tunnels.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Silences the tunnels that are open now: they stay open and carry nothing any more.
    pub fn silence(&self) {
        self.seen.silenced.store(self.tunnels().len(), Ordering::SeqCst);
    }
}

fn tunnel(mut client: &TcpStream, instead: Option<&str>, seen: &Arc<Seen>) -> io::Result<()> {
    let mut head = BufReader::new(client.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut words = lines.first().map(String::as_str).unwrap_or_default().split_whitespace();
    let (Some("CONNECT"), Some(target)) = (words.next(), words.next()) else {
        return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n");
    };
    let number = {
        let mut tunnels = seen.tunnels.lock().unwrap_or_else(PoisonError::into_inner);
        tunnels.push(target.to_owned());
        tunnels.len()
    };
    let Ok(server) = TcpStream::connect(instead.unwrap_or(target)) else {
        return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
    };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let back = (server.try_clone()?, client.try_clone()?, Arc::clone(seen));
    thread::spawn(move || carry(&back.0, &back.1, number, &back.2));
    carry(client, &server, number, seen)
}

fn carry(mut from: &TcpStream, mut to: &TcpStream, number: usize, seen: &Seen) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        let read = from.read(&mut bytes)?;
        let is_silent = number <= seen.silenced.load(Ordering::SeqCst);
        match read {
            0 if is_silent => return Ok(()),
            0 => return to.shutdown(Shutdown::Write),
            _ if is_silent => {}
            read => to.write_all(&bytes[..read])?,
        }
    }
}
