//! One list of cases over both shells; see [`sealog_tests::shells`].

mod blocking {
    sealog_tests::shell_cases!(::sealog_tests::shells::Blocking);
}

mod tokio {
    sealog_tests::shell_cases!(::sealog_tests::shells::Tokio);
}
