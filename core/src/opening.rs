//! The Opening machine (DESIGN.md section 4).
