//! Examples and claims of README, guides and `deploy/`.

mod deploy;
mod from_reframe;
mod guide;
mod messages;
mod pages;
mod queries;
mod readme;
mod security;
mod walk;
