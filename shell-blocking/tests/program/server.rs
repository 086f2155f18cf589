//! A server that speaks as much S3 as a log needs, and does not always keep its word.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What the server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// A create overwrites.
    IgnoresConditions,
    /// A create looks first, and others can look before it stores.
    LooksFirst,
    /// The object that was created last is in no listing.
    ListsLate,
    /// The object that was deleted last is in every listing.
    ListsDeleted,
    /// The first byte of a range that does not begin the object is another one.
    OtherBytes,
}

pub(crate) struct Server {
    shared: Arc<Shared>,
    url: String,
}

struct Shared {
    lie: Lie,
    bucket: Mutex<Bucket>,
    /// A create has looked.
    looked: Condvar,
}

#[derive(Default)]
struct Bucket {
    objects: BTreeMap<String, Vec<u8>>,
    looks: HashMap<String, usize>,
    created_last: Option<String>,
    deleted_last: Option<String>,
}

impl Server {
    /// It ends with the process.
    pub(crate) fn start(lie: Lie) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (bucket, looked) = Default::default();
        let shared = Arc::new(Shared { lie, bucket, looked });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, serving) = (connection.unwrap(), serving.clone());
                // A client that goes away is nothing to complain of.
                std::thread::spawn(move || drop(serving.serve(connection)));
            }
        });
        Server { shared, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What is stored.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared.bucket.lock().unwrap().objects.keys().cloned().collect()
    }
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn read(from: &mut impl BufRead) -> io::Result<Request> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut words = line.split_whitespace();
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let query = query.map(|(name, value)| (name.to_owned(), value.replace("%2F", "/")));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.collect());
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        Ok(Request { method, path, query, headers, body })
    }
}

type Answer = (&'static str, String, Vec<u8>);

fn answer(status: &'static str) -> Answer {
    (status, String::new(), Vec::new())
}

impl Shared {
    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(connection.try_clone()?);
        let mut to = connection;
        loop {
            let request = Request::read(&mut from)?;
            let (status, headers, body) = self.answer(&request);
            let head = format!(
                "HTTP/1.1 {status}\r\nETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
                 Content-Length: {}\r\n{headers}\r\n",
                body.len()
            );
            to.write_all(&[head.as_bytes(), &body].concat())?;
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        let key = request.path.trim_start_matches("/bucket").trim_start_matches('/');
        match (request.method.as_str(), key) {
            ("GET", "") => self.list(request),
            ("POST", "") => self.delete_many(&String::from_utf8_lossy(&request.body)),
            ("PUT", key) => self.put(key, request),
            ("GET", key) => self.get(key, request),
            ("DELETE", key) => {
                self.delete(key);
                answer("204 No Content")
            }
            _ => answer("405 Method Not Allowed"),
        }
    }

    fn put(&self, key: &str, request: &Request) -> Answer {
        let mut bucket = self.bucket.lock().unwrap();
        let is_conditional = request.headers.contains_key("if-none-match");
        if is_conditional && self.lie != Lie::IgnoresConditions && bucket.objects.contains_key(key)
        {
            return answer("412 Precondition Failed");
        }
        if self.lie == Lie::LooksFirst {
            *bucket.looks.entry(key.into()).or_default() += 1;
            self.looked.notify_all();
            let is_alone = |bucket: &mut Bucket| bucket.looks[key] < 2;
            let patience = Duration::from_millis(50);
            bucket = self.looked.wait_timeout_while(bucket, patience, is_alone).unwrap().0;
        }
        bucket.objects.insert(key.into(), request.body.clone());
        bucket.created_last = Some(key.into());
        answer("200 OK")
    }

    fn get(&self, key: &str, request: &Request) -> Answer {
        let bucket = self.bucket.lock().unwrap();
        let Some(content) = bucket.objects.get(key) else { return answer("404 Not Found") };
        let Some(range) = request.headers.get("range") else {
            return ("200 OK", String::new(), content.clone());
        };
        let (start, end) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        let start: usize = start.parse().unwrap();
        let end = (end.parse::<usize>().unwrap() + 1).min(content.len());
        let mut found = content[start..end].to_vec();
        if self.lie == Lie::OtherBytes && start > 0 {
            found[0] ^= 1;
        }
        let header = format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, content.len());
        ("206 Partial Content", header, found)
    }

    fn delete(&self, key: &str) {
        let mut bucket = self.bucket.lock().unwrap();
        bucket.objects.remove(key);
        bucket.deleted_last = Some(key.into());
        bucket.created_last = None;
    }

    fn delete_many(&self, body: &str) -> Answer {
        let mut deleted = String::new();
        for part in body.split("<Key>").skip(1) {
            let key = part.split("</Key>").next().unwrap();
            self.delete(key);
            deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
        }
        let xml = format!("<DeleteResult>{deleted}</DeleteResult>");
        ("200 OK", String::new(), xml.into_bytes())
    }

    fn list(&self, request: &Request) -> Answer {
        let bucket = self.bucket.lock().unwrap();
        let asked = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let (prefix, after) = (asked("prefix"), asked("start-after"));
        let hidden = bucket.created_last.as_ref().filter(|_| self.lie == Lie::ListsLate);
        let shown = bucket.deleted_last.as_ref().filter(|_| self.lie == Lie::ListsDeleted);
        let objects = bucket.objects.iter().map(|(key, content)| (key, content.len()));
        let contents: String = objects
            .chain(shown.map(|key| (key, 1)))
            .filter(|(key, _)| key.starts_with(&prefix) && **key > after && Some(*key) != hidden)
            .map(|(key, size)| {
                format!(
                    "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>1</ETag>\
                     <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                )
            })
            .collect();
        let xml = format!("<ListBucketResult>{contents}</ListBucketResult>");
        ("200 OK", String::new(), xml.into_bytes())
    }
}
