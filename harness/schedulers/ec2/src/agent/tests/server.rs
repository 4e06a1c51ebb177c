//! A small HTTP server that plays S3, with addresses that carry a secret, and the metadata service of every instance.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What presigned addresses end in. It may appear in nothing that a user sees.
pub(super) const SECRET: &str = "X-Amz-Signature=5ec2e7";

#[derive(Debug, Default)]
struct State {
    objects: std::sync::Mutex<BTreeMap<String, Vec<u8>>>,
    refuses_puts: AtomicBool,
    /// So many were refused.
    refused: AtomicU32,
    /// So many requests whose address holds this get an error.
    fails: std::sync::Mutex<BTreeMap<&'static str, u32>>,
    has_spot_notice: AtomicBool,
    /// The network has IPv6 alone.
    has_no_address: AtomicBool,
    /// Requests whose address holds this get no answer.
    hangs: std::sync::Mutex<Option<&'static str>>,
    /// One of them has come.
    is_hanging: AtomicBool,
    /// Until when the token of each instance is good.
    tokens: std::sync::Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug, Clone)]
pub(super) struct Server {
    state: Arc<State>,
    port: u16,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { state: Arc::default(), port: listener.local_addr().unwrap().port() };
        let accepting = server.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let server = accepting.clone();
                thread::spawn(move || server.answer(&connection));
            }
        });
        server
    }

    /// The presigned address of an object.
    pub(super) fn url(&self, key: &str) -> String {
        format!("http://127.0.0.1:{}/s3/{key}?X-Amz-Expires=3600&{SECRET}", self.port)
    }

    /// The metadata service of the instance with this rank.
    pub(super) fn imds(&self, rank: u32) -> String {
        format!("http://127.0.0.1:{}/imds/{rank}", self.port)
    }

    pub(super) fn put(&self, key: &str, body: impl Into<Vec<u8>>) {
        self.state.objects.lock().unwrap().insert(key.to_owned(), body.into());
    }

    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.state.objects.lock().unwrap().get(key).cloned()
    }

    /// All segments of a rank's log, in order.
    pub(super) fn segments(&self, rank: u32) -> Vec<Vec<u8>> {
        let prefix = format!("{rank}/log.");
        let objects = self.state.objects.lock().unwrap();
        objects.iter().filter(|(key, _)| key.starts_with(&prefix)).map(|(_, body)| body.clone()).collect()
    }

    /// From now on, S3 takes nothing.
    pub(super) fn refuse_puts(&self) {
        self.state.refuses_puts.store(true, Ordering::SeqCst);
    }

    /// From now on, instances have no address of IPv4.
    pub(super) fn without_addresses(&self) {
        self.state.has_no_address.store(true, Ordering::SeqCst);
    }

    /// How many writes S3 has refused.
    pub(super) fn refused(&self) -> u32 {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// How many tokens the metadata service has given.
    pub(super) fn tokens(&self) -> usize {
        self.state.tokens.lock().unwrap().len()
    }

    pub(super) fn take_puts(&self) {
        self.state.refuses_puts.store(false, Ordering::SeqCst);
    }

    /// The next requests whose address holds this get an error.
    pub(super) fn fail(&self, at: &'static str, times: u32) {
        self.state.fails.lock().unwrap().insert(at, times);
    }

    fn fails(&self, path: &str) -> bool {
        let mut fails = self.state.fails.lock().unwrap();
        let left = fails.iter_mut().find(|(part, left)| path.contains(**part) && **left > 0);
        left.map(|(_, left)| *left -= 1).is_some()
    }

    pub(super) fn give_spot_notice(&self) {
        self.state.has_spot_notice.store(true, Ordering::SeqCst);
    }

    /// From now on, requests whose address holds this wait.
    pub(super) fn hang(&self, at: &'static str) {
        *self.state.hangs.lock().unwrap() = Some(at);
    }

    /// Whether one waits.
    pub(super) fn is_hanging(&self) -> bool {
        self.state.is_hanging.load(Ordering::SeqCst)
    }

    /// Answers again. Who has waited until now is gone.
    pub(super) fn go_on(&self) {
        *self.state.hangs.lock().unwrap() = None;
    }

    fn hangs(&self, path: &str) -> bool {
        let hangs = self.state.hangs.lock().unwrap().is_some_and(|part| path.contains(part));
        self.state.is_hanging.fetch_or(hangs, Ordering::SeqCst);
        hangs
    }

    fn answer(&self, connection: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(connection);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (mut length, mut token, mut lives) = (0, String::new(), None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "x-aws-ec2-metadata-token-ttl-seconds" => lives = value.parse().ok().map(Duration::from_secs),
                "x-aws-ec2-metadata-token" => value.clone_into(&mut token),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut waited = false;
        while self.hangs(&path) {
            waited = true;
            thread::sleep(Duration::from_millis(20));
        }
        if waited {
            return None;
        }
        let (status, body) = match path.strip_prefix("/imds/") {
            _ if self.fails(&path) => ("503 Service Unavailable", Vec::new()),
            Some(path) => self.metadata(&method, path, &token, lives),
            None => self.object(&method, &path, body),
        };
        let mut stream = connection;
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).ok()?;
        stream.write_all(&body).ok()
    }

    fn object(&self, method: &str, path: &str, body: Vec<u8>) -> (&'static str, Vec<u8>) {
        let Some((key, query)) = path.strip_prefix("/s3/").and_then(|path| path.split_once('?')) else {
            return ("400 Bad Request", Vec::new());
        };
        if !query.ends_with(SECRET) {
            return ("403 Forbidden", Vec::new());
        }
        match method {
            "PUT" if self.state.refuses_puts.load(Ordering::SeqCst) => {
                self.state.refused.fetch_add(1, Ordering::SeqCst);
                ("503 Slow Down", Vec::new())
            }
            "PUT" => {
                self.put(key, body);
                ("200 OK", Vec::new())
            }
            // S3 says 403 of what is not there, to those who may not list.
            _ => self.get(key).map_or(("403 Forbidden", Vec::new()), |body| ("200 OK", body)),
        }
    }

    /// Version 2 alone: nothing is told without the token.
    fn metadata(&self, method: &str, path: &str, token: &str, lives: Option<Duration>) -> (&'static str, Vec<u8>) {
        let Some((rank, path)) = path.split_once("/latest/") else { return ("404 Not Found", Vec::new()) };
        let mut tokens = self.state.tokens.lock().unwrap();
        let text = match (method, path) {
            ("PUT", "api/token") => {
                let Some(lives) = lives else { return ("400 Bad Request", Vec::new()) };
                let token = format!("token-{rank}-{}", tokens.len());
                tokens.insert(token.clone(), Instant::now() + lives);
                token
            }
            _ if tokens.get(token).is_none_or(|end| *end < Instant::now()) => return ("401 Unauthorized", Vec::new()),
            (_, "meta-data/ami-launch-index") => rank.to_owned(),
            (_, "dynamic/instance-identity/document") => {
                let address = (!self.state.has_no_address.load(Ordering::SeqCst)).then(|| format!("10.0.0.1{rank}"));
                let document = serde_json::json!({
                    "accountId": "123456789012", "architecture": "x86_64", "availabilityZone": "eu-west-1a", "billingProducts": null,
                    "imageId": "ami-0123456789abcdef0", "instanceId": format!("i-0000000000000000{rank}"),
                    "instanceType": "c7i.large", "privateIp": address, "version": "2017-09-30",
                });
                // As EC2 writes it: a line for each name.
                serde_json::to_string_pretty(&document).unwrap().replace("\":", "\" :")
            }
            (_, "meta-data/spot/instance-action") if self.state.has_spot_notice.load(Ordering::SeqCst) => "{}".to_owned(),
            _ => return ("404 Not Found", Vec::new()),
        };
        ("200 OK", text.into_bytes())
    }
}
