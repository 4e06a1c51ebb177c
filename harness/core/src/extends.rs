//! `extends`: a check laid over its bases, in this file or in another.
