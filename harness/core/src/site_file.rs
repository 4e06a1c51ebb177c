//! The site file format, and how a system is picked.
