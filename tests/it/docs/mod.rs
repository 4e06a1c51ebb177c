//! Examples and claims of README, guides and `deploy/`.

mod deploy;
mod guide;
mod pages;
mod readme;
mod walk;
