//! A check, validated: its settings with every `when` entry laid over them, and its cases.
