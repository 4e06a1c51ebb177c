//! Units of measurement: which are the same, and by what factor they differ.
