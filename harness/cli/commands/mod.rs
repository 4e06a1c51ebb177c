//! The actions of the program: a module for each action or command. Each returns the exit code.

pub mod check;
pub mod convert;
pub mod doctor;
pub mod ec2;
pub mod init;
pub mod inspect;
pub mod k8s;
pub mod kernel;
pub mod manual;
mod new_files;
pub mod night;
pub mod pipeline;
pub mod session;
pub mod sweep;
