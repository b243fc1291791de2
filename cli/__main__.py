"""`python -m cli`: see --help of each command."""

from stack.signals import silent_interrupt

if __name__ == "__main__":
    with silent_interrupt():
        from cli.program import celerity
    celerity(prog_name="celerity")
