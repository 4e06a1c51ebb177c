//! Decides on a message while the server is away.

use crate::write::message::Message;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It precedes a launch.
    Launch,
    Spooled,
    /// Only the server decides it.
    Refused,
    /// It is nothing by itself.
    Dropped,
}

pub(super) fn fate(message: &Message) -> Fate {
    match message {
        Message::Intent(_) => Fate::Launch,
        Message::Launched(..) | Message::Finished(_) | Message::Cleaned(_) | Message::Swept(_) | Message::End { .. } => {
            Fate::Spooled
        }
        Message::Begin(_)
        | Message::TakeOver(..)
        | Message::HandOver(..)
        | Message::Beat(..)
        | Message::Plan(..)
        | Message::Seen(..) => Fate::Refused,
        Message::States | Message::Close => Fate::Dropped,
    }
}
