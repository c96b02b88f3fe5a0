//! A network between two programs on this machine: each byte arrives late, and one after the other.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A kind of network.
pub(crate) struct Link {
    pub(crate) name: &'static str,
    round_trip: Duration,
    bits_a_second: f64,
}

pub(crate) const LINKS: [Link; 2] = [
    Link { name: "50 ms and 20 Mbit/s", round_trip: Duration::from_millis(50), bits_a_second: 20e6 },
    Link { name: "5 ms and 1 Gbit/s", round_trip: Duration::from_millis(5), bits_a_second: 1e9 },
];

/// An open connection of such a network to one server.
pub(crate) struct Proxy {
    address: SocketAddr,
    received: Arc<AtomicU64>,
}

/// One direction, shared by all connections.
struct Lane {
    delay: Duration,
    bits_a_second: f64,
    /// When the last byte that was sent has left.
    free: Mutex<Instant>,
    bytes: Arc<AtomicU64>,
}

impl Link {
    /// Opens a port that leads to `server`.
    pub(crate) fn open(&self, server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let lane = |bytes: Arc<AtomicU64>| {
            Arc::new(Lane {
                delay: self.round_trip / 2,
                bits_a_second: self.bits_a_second,
                free: Mutex::new(Instant::now()),
                bytes,
            })
        };
        let (up, down) = (lane(Arc::default()), lane(received.clone()));
        let round_trip = self.round_trip;
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (up, down) = (up.clone(), down.clone());
                thread::spawn(move || {
                    // The handshake.
                    thread::sleep(round_trip);
                    let server = TcpStream::connect(server).unwrap();
                    let (client_2, server_2) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    thread::spawn(move || up.carry(client_2, server_2));
                    down.carry(server, client);
                });
            }
        });
        Proxy { address, received }
    }
}

impl Proxy {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many bytes came from the server until now.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Lane {
    /// Carries bytes until one side ends.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let _ = to.set_nodelay(true);
        // As much as a network holds: who sends more waits.
        let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(64);
        let writer = thread::spawn(move || {
            for (arrival, bytes) in receiver {
                thread::sleep(arrival.saturating_duration_since(Instant::now()));
                if to.write_all(&bytes).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length) = from.read(&mut buffer) {
            if length == 0 {
                break;
            }
            self.bytes.fetch_add(length as u64, Ordering::Relaxed);
            let left = {
                let mut free = self.free.lock().unwrap();
                #[allow(clippy::cast_precision_loss)]
                let takes = Duration::from_secs_f64(length as f64 * 8.0 / self.bits_a_second);
                *free = (*free).max(Instant::now()) + takes;
                *free
            };
            if sender.send((left + self.delay, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
        drop(sender);
        let _ = writer.join();
    }
}
