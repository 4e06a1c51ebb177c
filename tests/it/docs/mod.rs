//! Examples and claims of README, guides and `deploy/`.

mod deploy;
mod guide;
mod messages;
mod pages;
mod readme;
mod walk;
