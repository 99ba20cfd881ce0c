"""``python -m servewise``."""

from servewise.cli.main import main

if __name__ == "__main__":
    main()
