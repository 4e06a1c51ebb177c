//! Two threads that talk through a pipe or a TCP connection: what the operating system adds to moving bytes.
//!
//! One line a message size, as a table: throughput of a stream in one direction, and the median round trip of one
//! message there and back. The connection never leaves the machine: 127.0.0.1 and a port that the system picks.

use crate::Error;
use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// `muster kernel pipe` and `muster kernel loopback`
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The message sizes, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [64, 65536], value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    bytes: Vec<u32>,
    /// How long to measure each size, a half for each figure
    #[arg(long, value_name = "MS", default_value_t = 300)]
    milliseconds: u64,
}

/// Both directions, seen from the first end and from the second.
pub(crate) struct Ends {
    near: (Box<dyn Write + Send>, Box<dyn Read + Send>),
    far: (Box<dyn Write + Send>, Box<dyn Read + Send>),
}

pub(crate) fn pipes() -> io::Result<Ends> {
    let (there, out) = io::pipe()?;
    let (back, reply) = io::pipe()?;
    Ok(Ends { near: (Box::new(out), Box::new(back)), far: (Box::new(reply), Box::new(there)) })
}

pub(crate) fn sockets() -> io::Result<Ends> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
    }
    Ok(Ends { near: (Box::new(near.try_clone()?), Box::new(near)), far: (Box::new(far.try_clone()?), Box::new(far)) })
}

pub(crate) fn run(options: &Options, name: &str, connect: fn() -> io::Result<Ends>) -> Result<String, Error> {
    let budget = Duration::from_millis(options.milliseconds) / 2;
    let mut text = format!("{name}: bytes, throughput, median round trip\n");
    for &bytes in &options.bytes {
        let open = || connect().map_err(|source| Error::Io { action: "connect the two ends", source });
        let throughput = stream(open()?, bytes as usize, budget)?;
        let round_trip = ping_pong(open()?, bytes as usize, budget)?;
        let _ = writeln!(text, "{bytes:>9} {throughput:>10.3} MB/s {round_trip:>10.3} us");
    }
    Ok(text)
}

/// The first byte of the message that ends the talk.
const LAST: u8 = 1;

/// Megabytes a second from the near end to the far one, which counts the messages.
fn stream(ends: Ends, bytes: usize, budget: Duration) -> Result<f64, Error> {
    let Ends { near: (mut out, _back), far: (_reply, there) } = ends;
    let receiver = thread::spawn(move || receive(there, bytes, |_| Ok(())));
    let (mut message, begun, mut sent) = (vec![0; bytes], Instant::now(), 1);
    while begun.elapsed() < budget {
        send(&mut out, &message)?;
        sent += 1;
    }
    message[0] = LAST;
    send(&mut out, &message)?;
    let found = receiver.join().map_err(|_| Error::Thread)?? * bytes as u64;
    let (seconds, expected) = (begun.elapsed().as_secs_f64(), sent * bytes as u64);
    if found == expected { Ok(found as f64 / 1e6 / seconds) } else { Err(Error::Lost { found, expected }) }
}

/// Microseconds that one message takes there and back, the median.
fn ping_pong(ends: Ends, bytes: usize, budget: Duration) -> Result<f64, Error> {
    let Ends { near: (mut out, mut back), far: (mut reply, there) } = ends;
    let echo = thread::spawn(move || receive(there, bytes, |message| send(&mut reply, message)));
    let (mut message, mut answer, mut times) = (vec![0; bytes], vec![0; bytes], Vec::new());
    let begun = Instant::now();
    while message[0] != LAST {
        if begun.elapsed() >= budget {
            message[0] = LAST;
        }
        let sent = Instant::now();
        send(&mut out, &message)?;
        back.read_exact(&mut answer).map_err(|source| Error::Io { action: "receive", source })?;
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    echo.join().map_err(|_| Error::Thread)??;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn send(out: &mut dyn Write, message: &[u8]) -> Result<(), Error> {
    out.write_all(message).map_err(|source| Error::Io { action: "send", source })
}

/// Receives messages up to the last one, and says how many they were.
fn receive(mut from: impl Read, bytes: usize, mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<u64, Error> {
    let (mut message, mut count) = (vec![0; bytes], 0);
    while message[0] != LAST {
        from.read_exact(&mut message).map_err(|source| Error::Io { action: "receive", source })?;
        count += 1;
        each(&message)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_a_line_through_pipes_and_sockets() {
        for connect in [pipes as fn() -> io::Result<Ends>, sockets] {
            let options = Options { bytes: vec![1, 100_000], milliseconds: 2 };
            let text = run(&options, "link", connect).expect("measures");
            let sizes: Vec<_> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(sizes, ["1", "100000"], "{text}");
        }
    }

    #[test]
    fn a_link_that_breaks_is_an_error_and_no_figure() {
        let Ends { near, far } = pipes().expect("pipes");
        drop(far);
        let broken = Ends { near, far: (Box::new(io::sink()), Box::new(io::empty())) };
        assert!(matches!(stream(broken, 8, Duration::from_millis(1)), Err(Error::Io { .. })));
    }
}
