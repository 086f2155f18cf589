//! A proxy in front of an S3 endpoint that delays, loses and changes what passes through it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::child::within;

/// A request as the proxy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
}

/// What is done with a request.
#[derive(Clone, Debug)]
pub enum Treatment {
    /// It passes.
    Pass,
    /// It passes once the gate is open; until then nothing of its body is taken from the client.
    HoldBody(Gate),
    /// It is taken from the client whole, and passes once the gate is open.
    Hold(Gate),
    /// It passes, and the connection is closed instead of an answer.
    LoseAnswer,
    /// It passes without its condition, as through a store that knows none.
    Unconditionally,
}

type Rule = Arc<dyn Fn(&Head) -> Treatment + Send + Sync>;

/// A proxy, as long as the runtime is there in which it was started.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    rule: Mutex<Rule>,
    seen: Mutex<Vec<Head>>,
}

impl Proxy {
    /// Starts one in front of `host:port`.
    ///
    /// # Errors
    ///
    /// The system's.
    pub async fn start(upstream: String) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let rule: Rule = Arc::new(|_| Treatment::Pass);
        let shared = Shared { upstream, rule: Mutex::new(rule), seen: Mutex::default() };
        let proxy = Proxy { address, shared: Arc::new(shared) };
        let shared = proxy.shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that goes away in the middle is no failure of the proxy's.
                let shared = shared.clone();
                tokio::spawn(async move { shared.serve(client).await });
            }
        });
        Ok(proxy)
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it treats requests like this.
    pub fn treat(&self, rule: impl Fn(&Head) -> Treatment + Send + Sync + 'static) {
        *self.shared.rule.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(rule);
    }

    /// The next put of an object is treated like this; all else passes.
    pub fn treat_next_put(&self, treatment: Treatment) {
        let next = Mutex::new(Some(treatment));
        self.treat(move |head| {
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            let treatment = if head.method == "PUT" { next.take() } else { None };
            treatment.unwrap_or(Treatment::Pass)
        });
    }

    /// The requests since this was asked last.
    pub fn seen(&self) -> Vec<Head> {
        std::mem::take(&mut self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where a held request waits.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<Stage>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Closed,
    Held,
    Open,
    Landed,
}

/// Nothing between two processes takes this long.
const LONGEST: Duration = Duration::from_secs(60);

impl Gate {
    /// A closed gate.
    #[expect(clippy::new_without_default, reason = "a gate that is closed is worth its name")]
    pub fn new() -> Gate {
        Gate(Arc::new(watch::Sender::new(Stage::Closed)))
    }

    /// Waits until a request waits here.
    ///
    /// # Panics
    ///
    /// None comes.
    pub async fn held(&self) {
        self.reaches(Stage::Held).await;
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.advance(Stage::Open);
    }

    /// Waits until the store has answered the request.
    ///
    /// # Panics
    ///
    /// It does not.
    pub async fn landed(&self) {
        self.reaches(Stage::Landed).await;
    }

    /// Whether the store has answered the request.
    pub fn has_landed(&self) -> bool {
        *self.0.borrow() == Stage::Landed
    }

    fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let later = stage > *now;
            *now = stage.max(*now);
            later
        });
    }

    async fn reaches(&self, stage: Stage) {
        let mut stages = self.0.subscribe();
        let reached = stages.wait_for(|now| *now >= stage);
        // The sender is here.
        let _ = within(LONGEST, &format!("{stage:?}"), reached).await;
    }
}

impl Shared {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Some(mut request) = Incoming::head(&mut client).await? else { return Ok(()) };
        let rule = self.rule.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let head = request.line();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
        let treatment = rule(&head);
        let gate = match &treatment {
            Treatment::HoldBody(gate) => {
                gate.advance(Stage::Held);
                gate.reaches(Stage::Open).await;
                request.body(&mut client).await?;
                Some(gate)
            }
            Treatment::Hold(gate) => {
                request.body(&mut client).await?;
                gate.advance(Stage::Held);
                gate.reaches(Stage::Open).await;
                Some(gate)
            }
            _ => {
                request.body(&mut client).await?;
                None
            }
        };
        let unconditionally = matches!(treatment, Treatment::Unconditionally);
        let answer = self.forward(&request, unconditionally).await?;
        if let Some(gate) = gate {
            gate.advance(Stage::Landed);
        }
        if !matches!(treatment, Treatment::LoseAnswer) {
            client.write_all(&answer).await?;
            client.shutdown().await?;
        }
        Ok(())
    }

    /// Each request has a connection of its own, whose end is the end of the answer.
    async fn forward(&self, request: &Incoming, unconditionally: bool) -> io::Result<Vec<u8>> {
        let dropped = |name: &str| {
            name.eq_ignore_ascii_case("connection")
                || unconditionally && name.eq_ignore_ascii_case("if-none-match")
        };
        let mut head = String::new();
        for line in request.head.lines().filter(|line| !line.is_empty()) {
            if !dropped(line.split(':').next().unwrap_or_default()) {
                head.extend([line, "\r\n"]);
            }
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut upstream = TcpStream::connect(&self.upstream).await?;
        upstream.write_all(head.as_bytes()).await?;
        upstream.write_all(&request.body).await?;
        let mut answer = Vec::new();
        upstream.read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

struct Incoming {
    /// Up to and with the empty line.
    head: String,
    body: Vec<u8>,
}

impl Incoming {
    /// Reads up to the empty line; what is read beyond belongs to the body.
    async fn head(client: &mut TcpStream) -> io::Result<Option<Incoming>> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let body = bytes.split_off(end + 4);
                let head = String::from_utf8(bytes).map_err(io::Error::other)?;
                return Ok(Some(Incoming { head, body }));
            }
            if client.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn line(&self) -> Head {
        let mut words = self.head.split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        Head { method: word(), target: word() }
    }

    fn length(&self) -> usize {
        let mut lengths = self.head.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        lengths.next_back().unwrap_or(0)
    }

    async fn body(&mut self, client: &mut TcpStream) -> io::Result<()> {
        let read = self.body.len();
        let length = self.length();
        self.body.resize(length, 0);
        client.read_exact(&mut self.body[read.min(length)..]).await.map(drop)
    }
}
