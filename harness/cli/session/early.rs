//! Signals in a command that has no session yet, or none at all. They end the process, whatever it waits for.
//!
//! ```text
//! Early::listen -> look, wait, take over, begin -> end: from here on the session listens
//!        '-signal-> claims are given back -> a line on stderr -> exit 130
//! ```

use crate::{
    exit,
    session::leave,
    terminal::{NoEcho, Terminal},
};
use anyhow::Context;
use muster_core::decisions::pipeline::EXIT_INTERRUPTED;
use muster_session::{
    front::signals::Signals,
    ownership::claims::{self, Claims},
};
use std::{future, sync::Arc};
use tokio::{
    runtime::Runtime,
    sync::{Mutex, watch},
    task::AbortHandle,
    time::timeout,
};

/// The words of the line after a signal for a session that has not begun.
pub const NOTHING_LAUNCHED: &str = "nothing was launched";

/// Ends the process at the first signal, until it is dropped or ended. After that the signals of this process do nothing, unless
/// somebody else listens.
pub struct Early {
    task: AbortHandle,
    is_signalled: watch::Sender<bool>,
    /// Locked while something is done for which sessions are held.
    claims: Arc<Mutex<Claims>>,
}

impl Early {
    /// Begins to listen, on a task of its own: the main thread may read files, or print. `left` says how things stand after a signal.
    pub fn listen(runtime: &Runtime, left: &'static str, terminal: Terminal) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let mut signals = Signals::listen().context("listen to signals")?;
        let (is_signalled, claims) = (watch::Sender::new(false), Arc::<Mutex<Claims>>::default());
        let (signalled, held) = (is_signalled.clone(), Arc::clone(&claims));
        let task = runtime.spawn(async move {
            let name = signals.next().await;
            signalled.send_replace(true);
            let _given_back = timeout(claims::GIVE_BACK_LIMIT, held.lock()).await;
            leave::print(terminal, format!("interrupted by {name}: {left}")).await;
            NoEcho::end();
            exit::at_once(EXIT_INTERRUPTED)
        });
        Ok(Self { task: task.abort_handle(), is_signalled, claims })
    }

    /// Does what holds sessions. At a signal it is dropped, and the sessions are given back before the process ends.
    pub async fn holding<T>(&self, work: impl AsyncFnOnce(&mut Claims) -> T) -> T {
        let mut is_signalled = self.is_signalled.subscribe();
        let mut claims = self.claims.lock().await;
        let signal = async { drop(is_signalled.wait_for(|is| *is).await) };
        if let Some(done) = claims::held_until(&mut claims, signal, work).await {
            return done;
        }
        drop(claims);
        future::pending().await
    }

    /// Somebody else listens now.
    pub fn end(&self) {
        self.task.abort();
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.end();
    }
}
