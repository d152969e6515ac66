"""Exit statuses by which a process tells a scheduler or a shell how it ended."""

EXIT_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: stopped early, the same command goes on
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report Ctrl-C
