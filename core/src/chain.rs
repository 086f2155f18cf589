//! Selecting the chain that is history (DESIGN.md section 3).
