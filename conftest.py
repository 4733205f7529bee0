"""What holds for all tests."""

import signal

from hypothesis import settings

# The same examples in every run, however slow the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Started in the background or by nohup, pytest would hand signals to ignore down to the processes that tests
# start to see what Ctrl-C and a closed terminal do to them.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
