//! Faults on demand.

use crate::request::status::No;
use std::time::Duration;

/// One thing that goes wrong, with which requests, and how often.
#[derive(Debug, Clone)]
pub struct Fault {
    method: Option<String>,
    part: String,
    times: usize,
    pub(crate) effect: Effect,
}

#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// This answer instead of the right one.
    Refuse(No),
    /// This text instead of the right answer, with status 200.
    Text(String),
    /// The stream begins as it should and ends with this `ERROR` event as soon as something would have been sent.
    StreamError(No),
    /// The connection breaks after so many bytes of the answer; `clean`: the answer only ends there.
    Cut { after: usize, clean: bool },
    /// It is done, and the answer never comes.
    Swallow,
    /// The answer comes late.
    Late(Duration),
}

impl Fault {
    /// With requests whose method (`GET`; empty: any) is this and whose path and query contain `part`. Once, unless another number is given.
    fn on(method: &str, part: &str, effect: Effect) -> Self {
        let method = (!method.is_empty()).then(|| method.to_owned());
        Self { method, part: part.to_owned(), times: 1, effect }
    }

    /// This status instead of the right answer.
    pub fn status(method: &str, part: &str, code: u16, reason: &str, message: &str) -> Self {
        Self::on(method, part, Effect::Refuse(No::new(code, reason, message)))
    }

    /// 429 with `Retry-After`.
    pub fn too_many(method: &str, part: &str, retry_after: u64) -> Self {
        let no = No::new(429, "TooManyRequests", "the server has received too many requests, please try again later");
        Self::on(method, part, Effect::Refuse(No { retry_after: Some(retry_after), ..no }))
    }

    /// This text, with status 200: how a kubelet tells errors about a log.
    pub fn text(part: &str, text: &str) -> Self {
        Self::on("GET", part, Effect::Text(text.to_owned()))
    }

    /// A watch that begins, and ends with an `ERROR` event in place of its first event.
    pub fn stream_error(part: &str, code: u16, reason: &str) -> Self {
        Self::on("GET", part, Effect::StreamError(No::new(code, reason, "it ends here")))
    }

    /// The connection breaks after so many bytes of the answer.
    pub fn cut(part: &str, after: usize) -> Self {
        Self::on("GET", part, Effect::Cut { after, clean: false })
    }

    /// The answer ends after so many bytes, as if it were complete.
    pub fn end(part: &str, after: usize) -> Self {
        Self::on("GET", part, Effect::Cut { after, clean: true })
    }

    /// It is done, but the connection breaks before the answer.
    pub fn swallow(method: &str, part: &str) -> Self {
        Self::on(method, part, Effect::Swallow)
    }

    /// The answer comes late.
    pub fn late(method: &str, part: &str, by: Duration) -> Self {
        Self::on(method, part, Effect::Late(by))
    }

    /// Limits the fault to this number of requests.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    fn fits(&self, method: &str, target: &str) -> bool {
        self.times > 0 && self.method.as_deref().is_none_or(|own| own == method) && target.contains(&self.part)
    }
}

/// The first fault that fits, once less to come.
pub(crate) fn strike(faults: &mut Vec<Fault>, method: &str, target: &str) -> Option<Effect> {
    let at = faults.iter().position(|fault| fault.fits(method, target))?;
    faults[at].times -= 1;
    let effect = faults[at].effect.clone();
    if faults[at].times == 0 {
        faults.remove(at);
    }
    Some(effect)
}
