//! From the texts of all files to checks; the paths it still wants are asked for, never opened.
