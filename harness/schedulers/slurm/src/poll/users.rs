//! The names of those who cancel jobs. A directory service answers when it likes, and nobody waits long for it.

use muster_host::account;
use parking_lot::Mutex;
use std::{collections::HashMap, time::Duration};
use tokio::{task::spawn_blocking, time::timeout};

/// Then its number stands for a name.
const PATIENCE: Duration = Duration::from_secs(2);

/// Each is asked for once.
#[derive(Debug, Default)]
pub(super) struct Users(Mutex<HashMap<String, String>>);

impl Users {
    /// The name of a user id as the accounting writes it.
    pub(super) async fn name(&self, uid: &str) -> String {
        self.named(uid, account::name).await
    }

    async fn named(&self, uid: &str, look: fn(u32) -> Option<String>) -> String {
        if let Some(known) = self.0.lock().get(uid) {
            return known.clone();
        }
        let number = uid.parse().ok();
        let asked = timeout(PATIENCE, spawn_blocking(move || number.and_then(look))).await;
        let name = asked.ok().and_then(Result::ok).flatten().unwrap_or_else(|| format!("uid {uid}"));
        self.0.lock().insert(uid.to_owned(), name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn a_directory_service_that_does_not_answer_is_asked_once_and_not_waited_for() {
        let users = Users::default();
        assert_eq!((users.name("0").await, users.name("4000000000").await), ("root".to_owned(), "uid 4000000000".to_owned()));
        let slow = |_| {
            std::thread::sleep(PATIENCE * 2);
            None
        };
        let started = Instant::now();
        for _ in 0..3 {
            assert_eq!(users.named("7", slow).await, "uid 7");
        }
        assert!(started.elapsed() < PATIENCE * 2, "{:?}", started.elapsed());
    }
}
