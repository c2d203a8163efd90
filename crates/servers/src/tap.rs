//! A relay in front of a port that can be cut and repaired. Both ends see the same as with a pulled cable.

use crate::port::free_port;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Both ends of each relayed connection, by a number.
#[derive(Debug, Default)]
struct TapLines {
    next: u64,
    open: BTreeMap<u64, [TcpStream; 2]>,
}

#[derive(Debug, Default)]
struct TapShared {
    is_cut: AtomicBool,
    lines: Mutex<TapLines>,
}

impl TapShared {
    fn lines(&self) -> MutexGuard<'_, TapLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes both ends of a connection.
    fn hang_up(&self, number: u64) {
        let ends = self.lines().open.remove(&number);
        ends.iter().flatten().for_each(|end| _ = end.shutdown(Shutdown::Both));
    }
}

#[derive(Debug)]
pub struct Tap {
    port: u16,
    target: u16,
    shared: Arc<TapShared>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Tap {
    /// Starts a relay to this loopback port.
    ///
    /// # Panics
    /// If the relay cannot listen.
    #[must_use]
    pub fn in_front_of(port: u16) -> Self {
        let tap = Self {
            port: free_port(),
            target: port,
            shared: Arc::new(TapShared::default()),
            listening: Mutex::new(None),
        };
        tap.repair();
        tap
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Drops all connections and refuses new ones.
    ///
    /// # Panics
    /// If the relay's thread has panicked.
    pub fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listening) = listening {
            // It waits for a call; this is one.
            _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
            listening.join().expect("a relay does not panic");
        }
        let open: Vec<u64> = self.shared.lines().open.keys().copied().collect();
        open.into_iter().for_each(|number| self.shared.hang_up(number));
    }

    /// Accepts connections again.
    ///
    /// # Panics
    /// If the relay cannot listen.
    pub fn repair(&self) {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if listening.is_some() {
            return;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).expect("its port is its own");
        self.shared.is_cut.store(false, Ordering::SeqCst);
        let (shared, target) = (Arc::clone(&self.shared), self.target);
        *listening = Some(thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                if shared.is_cut.load(Ordering::SeqCst) {
                    return;
                }
                // A server that is down hangs up on its caller, and so does this.
                _ = relay(&shared, caller, target);
            }
        }));
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.cut();
    }
}

fn relay(shared: &Arc<TapShared>, caller: TcpStream, target: u16) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target))?;
    caller.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ends = [caller.try_clone()?, server.try_clone()?];
    let number = {
        let mut lines = shared.lines();
        lines.next += 1;
        let number = lines.next;
        lines.open.insert(number, ends);
        number
    };
    let back = (server.try_clone()?, caller.try_clone()?);
    for (mut from, mut to) in [(caller, server), back] {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            _ = io::copy(&mut from, &mut to);
            shared.hang_up(number);
        });
    }
    Ok(())
}
