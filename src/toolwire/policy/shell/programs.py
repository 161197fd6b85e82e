"""Programs whose effects follow from their options and operands alone, and those that walk folders.

An option that is missing here is asked about. One with a value must be declared with it: a value
taken for a flag is only judged as an operand too, but a flag taken for an option with a value
would hide the word behind it.
"""

import msgspec

from toolwire.policy.shell.effects import (
    Effects,
    Line,
    of_line,
    opaque,
    read_line,
    syntax,
    unknown_word,
)
from toolwire.policy.shell.syntax import names

_COLOR = "--color?T --colour?T"
_SUM = "-btz --binary --tag --text --zero"
_NOTHING_BUT_TEXT = "| T*"

READS: dict[str, str] = {
    # Files and folders
    "ls": f"""-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 --all --almost-all --author --escape
        --ignore-backups --directory --file-type --full-time --group-directories-first --no-group
        --human-readable --si --dereference-command-line --inode --kibibytes --numeric-uid-gid
        --literal --hide-control-chars --show-control-chars --quote-name --reverse --recursive
        --size --zero --context --block-size=T --format=T --hide=T --ignore=T -I=T
        --indicator-style=T --quoting-style=T --sort=T --time=T --time-style=T --tabsize=T -T=T
        --width=T -w=T --classify?T --hyperlink?T {_COLOR} | R*""",
    "dir": "-alh1 --all | R*",
    "cat": """-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank
        --show-tabs --show-nonprinting | R*""",
    "bat": """-npAP --plain --number --show-all --no-pager --paging=T --style=T --color=T -l=T
        --language=T -r=T --line-range=T --theme=T --wrap=T --decorations=T | R*""",
    "head": """-# -qvz --quiet --silent --verbose --zero-terminated -c=T --bytes=T -n=T --lines=T
        | R*""",
    "tail": """-# -qvz --quiet --silent --verbose --zero-terminated --retry -c=T --bytes=T -n=T
        --lines=T -s=T --sleep-interval=T --pid=T | R*""",
    "tac": "-br --before --regex -s=T --separator=T | R*",
    "nl": """-p --no-renumber -b=T -d=T -f=T -h=T -i=T -l=T -n=T -s=T -v=T -w=T
        --body-numbering=T --number-width=T --number-format=T --number-separator=T | R*""",
    "wc": "-clmwL --bytes --chars --lines --words --max-line-length --total=T | R*",
    "rev": "-0 --zero | R*",
    "fold": "-bcs --bytes --spaces -w=T --width=T -# | R*",
    "fmt": "-cstu -w=T --width=T -# | R*",
    "cut": """-snz --only-delimited --zero-terminated --complement -b=T -c=T -d=T -f=T --bytes=T
        --characters=T --delimiter=T --fields=T --output-delimiter=T | R*""",
    "paste": "-sz --serial --zero-terminated -d=T --delimiters=T | R*",
    "join": """-iz --ignore-case --check-order --nocheck-order --header -a=T -e=T -j=T -o=T -t=T
        -v=T -1=T -2=T | R R""",
    "column": """-tenxJLR --table -s=T --separator=T -o=T --output-separator=T -c=T -N=T
        --table-columns=T | R*""",
    "expand": "-i --initial -t=T --tabs=T | R*",
    "unexpand": "-a --all --first-only -t=T --tabs=T | R*",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 | T T",
    "sort": """-bdfgiMhnRrVcCmsuz --ignore-leading-blanks --dictionary-order --ignore-case
        --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort
        --numeric-sort --random-sort --reverse --version-sort --check?T --merge --stable --unique
        --zero-terminated --debug --sort=T --key=T -k=T --field-separator=T -t=T --buffer-size=T
        -S=T --parallel=T --output=W -o=W --random-source=R --batch-size=T | R*""",
    "shuf": "-erz -n=T -i=T --head-count=T --input-range=T -o=W --output=W | R*",
    "uniq": """-cdDiuz --count --repeated --ignore-case --unique --zero-terminated
        --all-repeated?T --group?T -f=T -s=T -w=T --skip-fields=T --skip-chars=T --check-chars=T
        | R W""",
    "comm": """-123iz --check-order --nocheck-order --total --zero-terminated --output-delimiter=T
        | R R""",
    "cmp": "-bls --print-bytes --verbose --quiet --silent -i=T -n=T --bytes=T | R R T T",
    "diff": f"""-qscuenypTtrNiEZbwBad --normal --brief --report-identical-files --context?T
        --unified?T --ed --rcs --side-by-side --left-column --suppress-common-lines
        --show-c-function --expand-tabs --initial-tab --suppress-blank-empty --recursive
        --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case
        --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change
        --ignore-all-space --ignore-blank-lines --text --strip-trailing-cr --minimal
        --speed-large-files -# -C=T -U=T -W=T --width=T -F=T --show-function-line=T --label=T -L=T
        --tabsize=T -x=T --exclude=T -X=R --exclude-from=R -S=T --starting-file=T --from-file=A
        --to-file=A -I=T --ignore-matching-lines=T --horizon-lines=T --palette=T {_COLOR} | A A""",
    "stat": "-Lftx --dereference --file-system --terse -c=T --format=T --printf=T --cached=T | R*",
    "file": """-bhikLnNprsSvz0 --brief --mime --mime-type --mime-encoding --keep-going
        --dereference --no-dereference --raw --extension --no-pad -F=T --separator=T -P=T | R*""",
    "du": """-0abcDHhklmPSsx --null --all --apparent-size --bytes --total --dereference-args
        --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize
        --one-file-system --time?T -B=T --block-size=T -d=T --max-depth=T -t=T --threshold=T
        --time-style=T -X=R --exclude-from=R --exclude=T | R*""",
    "df": """-ahHiklPTv --all --human-readable --si --inodes --local --portability --print-type
        --total -t=T --type=T -x=T --exclude-type=T -B=T --block-size=T --output?T | R*""",
    "tree": """-adfipsughDFqNQrtxACSnvJX --noreport --dirsfirst --filesfirst --du --si --prune
        --gitignore --matchdirs --ignore-case --inodes --device --sort?T -L=T -P=T -I=T
        --filelimit=T --charset=T --timefmt=T | R*""",
    "readlink": "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing | T*",
    "realpath": """-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical
        --quiet --strip --no-symlinks --zero --relative-to=T --relative-base=T | T*""",
    "basename": "-az --multiple --zero -s=T --suffix=T | T*",
    "dirname": "-z --zero | T*",
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"),
        f"{_SUM} -l=T --length=T | R*",
    ),
    "shasum": "-btU01 -a=T --algorithm=T | R*",
    "cksum": "-a=T --algorithm=T --untagged --raw | R*",
    "base64": "-di --decode --ignore-garbage -w=T --wrap=T | R",
    "base32": "-di --decode --ignore-garbage -w=T --wrap=T | R",
    "od": "-abcdfilosxv -A=T -t=T -N=T -j=T -w?T -S=T --address-radix=T --format=T | R*",
    "hexdump": "-bcCdovx -e=T -n=T -s=T | R*",
    "xxd": "-abCeEiprudt -c=T -g=T -l=T -o=T -s=T -n=T | R W",
    "strings": "-afow -n=T --bytes=T -t=T --radix=T -e=T --encoding=T -# | R*",
    "zcat": "-fqv | R*",
    "bzcat": "-sv | R*",
    "xzcat": "-qv | R*",
    "less": """-SRNFXEeinMqrsKgx --no-init --RAW-CONTROL-CHARS --LINE-NUMBERS
        --quit-if-one-screen | R*""",
    "more": "-dflps | R*",
    "iconv": "-cls -f=T -t=T --from-code=T --to-code=T --list -o=W --output=W | R*",
    # Text and numbers
    "echo": "",
    "printf": "",
    "seq": "-w --equal-width -f=T --format=T -s=T --separator=T | T T T",
    "expr": "",
    "test": "",
    "[": "",
    "true": "",
    "false": "",
    ":": "",
    "sleep": _NOTHING_BUT_TEXT,
    "date": """-uR -I?T --utc --universal --rfc-email --iso-8601?T --rfc-3339=T -d=T --date=T -r=R
        --reference=R | T""",
    "cal": "-13jmny | T*",
    # The machine and its processes
    "pwd": "-LP |",
    "whoami": "|",
    "id": "-agGnruzZ --group --groups --name --real --user --zero | T*",
    "groups": "| T*",
    "uname": "-asnrvmpio --all --kernel-name --machine --operating-system --kernel-release |",
    "hostname": "-asfdiIA |",
    "arch": "|",
    "nproc": "--all --ignore=T |",
    "uptime": "-ps --pretty --since |",
    "free": "-bkmghlstwv --human --mega --giga --wide --total -c=T |",
    "lscpu": "-abcpexyJ --json --extended?T |",
    "lsblk": "-abdfJlmnprt --json --fs -o=T --output=T |",
    "vmstat": "-adsSwt | T T",
    "tty": "-s |",
    "locale": "-akcmv | T*",
    "getconf": "-a | T T",
    "ps": "",
    "pgrep": "-afilnovxcU -u=T -d=T --full --list-name --list-full --count | T",
    "pidof": "-s | T*",
    "printenv": "-0 --null | T*",
    "whereis": "-bms | T*",
    "which": "-as --all | T*",
    "type": "-afptP | T*",
    "tput": "| T*",
    "ulimit": "-aHS |",
    # Steering the text itself
    "exit": "| T",
    "umask": "-S |",
}
"""Programs that read at most, unless an option or operand says otherwise."""

WRITES: dict[str, str] = {
    "mkdir": "-pv --parents --verbose -m=T --mode=T | W*",
    "touch": "-acm --no-create -d=T --date=T -t=T -r=R --reference=R --time=T | W*",
    "cp": """-aAbdfiHlLnpPrRsuvx --archive --backup?T --force --interactive --no-clobber
        --no-dereference --recursive --update --verbose --one-file-system --preserve?T --link
        --parents -t=W --target-directory=W -T -S=T --suffix=T --reflink?T --sparse=T | A* W""",
    "tee": "-aip --append --ignore-interrupts | W*",
    "install": "-bcCDpsv -m=T --mode=T -t=W --target-directory=W -T | R* W",
    "chmod": "-cfv --changes --quiet --verbose | T W*",
}
"""Programs that write the files they are given."""

REMOVES: dict[str, str] = {
    "rm": """-dfiIrRv --dir --force --interactive?T --recursive --verbose --one-file-system
        --preserve-root --no-preserve-root | D*""",
    "rmdir": "-pv --parents --verbose --ignore-fail-on-non-empty | D*",
    "unlink": "| D",
    "truncate": "-co --no-create -s=T --size=T -r=R --reference=R | D*",
    "gzip": "-cdfklnNrtv123456789 --keep --stdout --decompress --list --best --fast | D*",
    "gunzip": "-cfklnNtv --keep --stdout --list | D*",
    "shred": "-fnuvxz -n=T -s=T | D*",
    "mv": """-bfinuvT --backup?T --force --interactive --no-clobber --update --verbose -t=W
        --target-directory=W -S=T --suffix=T | D* W""",
}
"""Programs that delete something."""

CHANGES: dict[str, tuple[str, str]] = {
    "curl": (
        "it uses the network",
        """-fgGIikLlNqRsSvZ#046 -p --fail --fail-with-body --silent --show-error --location --head
        --include --insecure --compressed --verbose --get --ipv4 --ipv6 --http1.1 --http2
        --no-progress-meter --progress-bar --no-buffer --retry-all-errors --create-dirs
        --remote-time -X=T --request=T -H=T --header=T -A=T --user-agent=T -e=T --referer=T -m=T
        --max-time=T --connect-timeout=T --retry=T --retry-delay=T --retry-max-time=T --url=T
        --data-raw=T --json=T -w=T --write-out=T --max-redirs=T -r=T --range=T -y=T -Y=T
        --limit-rate=T -o=W --output=W -D=W --dump-header=W | T*""",
    ),
    "wget": (
        "it uses the network",
        """-qvcNSnd --quiet --verbose --no-verbose --continue --timestamping --spider
        --no-check-certificate --server-response -T=T --timeout=T -t=T --tries=T -U=T
        --user-agent=T --header=T -O=W --output-document=W -P=W --directory-prefix=W
        --max-redirect=T | T*""",
    ),
    "split": (
        "it writes many files",
        "-dexuv -a=T -b=T -C=T -l=T -n=T --lines=T --bytes=T --number=T -# | R W",
    ),
    "csplit": ("it writes many files", "-ksz -f=W --prefix=W -b=T -n=T | R T*"),
    "ping": ("it uses the network", "-46nqv -c=T -i=T -W=T -w=T -s=T | T"),
    "kill": ("it ends processes", "-# | T*"),
    "pkill": ("it ends processes", "-finvx -# -u=T | T"),
    "killall": ("it ends processes", "-eIqvw -# -s=T | T*"),
    "tar": (
        "it writes what an archive contains",
        """-cxtvzjJkpahOrum --create --extract --list --verbose --gzip --bzip2 --xz --zstd
        --keep-old-files --to-stdout --strip-components=T --exclude=T --exclude-vcs -f=W --file=W
        -C=W --directory=W --wildcards --no-same-owner --auto-compress | A*""",
    ),
    "ln": ("it makes links", "-bfinrsvT --symbolic --force --verbose --relative | R* W"),
    "patch": (
        "it changes the files that a patch names",
        "-bEflNRsu -p=T --strip=T -i=R --input=R -d=W --dry-run --forward --reverse | W R",
    ),
    "unzip": ("it writes what an archive contains", "-ajnoqvltpCL -d=W -x=T | R T*"),
    "zip": ("it writes an archive", "-rqjvud9 | W A*"),
}
"""Programs that do more than read and write named files: a rule has to allow them."""

VERSIONS = names("""
    python python2 python3 pip pip3 node npm npx deno bun ruby gem perl php java javac gcc g++ cc
    clang clang++ cmake make docker git uv ruff tsc jq rg fd bat kubectl helm gh psql sqlite3
    redis-cli curl wget ssh openssl bash zsh fish sh tmux vim nvim lua julia ghc tree find grep sed
    awk gawk tar zip unzip rsync ffmpeg convert magick pandoc nginx mysql protoc shellcheck""")
"""Programs whose version may be asked; not those that a project's files redirect (cargo, yarn)."""


FOUND = "{}"
_GREP = syntax(
    """-# -EFGPiwxzsvbnHhoqaIrRLlcTZUuyVp --extended-regexp --fixed-strings --basic-regexp
    --perl-regexp --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data
    --no-messages --invert-match --byte-offset --line-number --line-buffered --with-filename
    --no-filename --only-matching --quiet --silent --text --recursive --dereference-recursive
    --files-without-match --files-with-matches --count --initial-tab --null --no-group-separator
    --binary --color?T --colour?T -e=T --regexp=T -f=R --file=R -m=T --max-count=T --label=T
    --binary-files=T --include=T --exclude=T
    --exclude-from=R --exclude-dir=T -B=T --before-context=T -A=T --after-context=T -C=T
    --context=T --group-separator=T | T*"""
)
_RG = syntax(
    """-# -aFHIhiLlNnoPpqSsUuvwxz0c.b --text --fixed-strings --with-filename --no-filename
    --ignore-case --files-with-matches --files-without-match --no-line-number --line-number
    --only-matching --pcre2 --pretty --quiet --smart-case --case-sensitive --multiline
    --multiline-dotall --unrestricted --invert-match --word-regexp --line-regexp --count
    --count-matches --column --no-column --heading --no-heading --hidden --no-hidden --no-ignore
    --no-ignore-vcs --no-ignore-parent --no-ignore-global --no-ignore-dot --files --json --stats
    --trim --null --follow --no-follow --vimgrep --no-messages --byte-offset --passthru
    --one-file-system --no-config --no-require-git --glob-case-insensitive --type-list --crlf
    --include-zero --debug --line-buffered --block-buffered --null-data --no-unicode --no-mmap
    --max-columns-preview --sort-files --version -A=T -B=T -C=T --after-context=T
    --before-context=T --context=T -e=T --regexp=T -f=R --file=R -g=T --glob=T --iglob=T -t=T
    --type=T -T=T --type-not=T --type-add=T -m=T --max-count=T -d=T --max-depth=T --maxdepth=T
    -M=T --max-columns=T --max-filesize=T -j=T --threads=T -r=T --replace=T --sort=T --sortr=T
    --color=T --colors=T -E=T --encoding=T --context-separator=T --path-separator=T --engine=T
    --field-match-separator=T --field-context-separator=T --ignore-file=R --dfa-size-limit=T
    --regex-size-limit=T --hyperlink-format=T | T*"""
)
_FD = syntax(
    """-HIuaplsigF01qh --hidden --no-ignore --no-ignore-vcs --unrestricted --absolute-path
    --full-path --list-details --case-sensitive --ignore-case --glob --fixed-strings
    --print0 --regex --quiet --show-errors --prune --strip-cwd-prefix?T --one-file-system -d=T
    --max-depth=T --min-depth=T --exact-depth=T -t=T --type=T -e=T --extension=T -E=T --exclude=T
    -S=T --size=T --changed-within=T --changed-before=T -o=T --owner=T -c=T --color=T -j=T
    --threads=T --max-results=T --format=T | T*"""
)
_TESTS = names("""
    -empty -true -false -nouser -nogroup -readable -writable -executable -daystart -depth -mount
    -noleaf -xdev -nowarn -warn -ignore_readdir_race -noignore_readdir_race -print -print0 -ls
    -prune -quit -o -or -a -and -not ! ( ) , -d""")
_TESTS_WITH_VALUE = names("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -regextype
    -type -xtype -maxdepth -mindepth -amin -atime -cmin -ctime -mmin -mtime -size -perm -user
    -group -uid -gid -links -inum -used -fstype -printf -newermt
    -newerct -newerat -newermm -newerBt""")
_TESTS_WITH_FILE = names("-newer -anewer -cnewer -samefile")
_WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def grep(words: tuple[str, ...]) -> Effects:
    """What a grep command does."""
    line = read_line(words, _GREP)
    if line.unknown:
        return unknown_word("grep", line)
    found = of_line("grep", line, _GREP)
    files = _without_pattern(line, "-e", "--regexp", "-f", "--file")
    follows = line.has("-R", "--dereference-recursive")
    walks = follows or line.has("-r", "--recursive")
    if not walks:
        return msgspec.structs.replace(found, reads=(*found.reads, *files))
    return msgspec.structs.replace(found, trees=files or (".",), follows=follows)


def rg(words: tuple[str, ...]) -> Effects:
    """What a ripgrep command does."""
    line = read_line(words, _RG)
    if line.unknown:
        return unknown_word("rg", line)
    found = of_line("rg", line, _RG)
    names_only = line.has("--files", "--type-list")
    files = tuple(text for text, _ in line.operands)
    if not names_only:
        files = _without_pattern(line, "-e", "--regexp", "-f", "--file")
    found = msgspec.structs.replace(found, words=(words[0], "--no-config", *words[1:]))
    if names_only and not line.has("-L", "--follow"):
        return msgspec.structs.replace(found, reads=(*found.reads, *files))
    return msgspec.structs.replace(found, trees=files or (".",), follows=line.has("-L", "--follow"))


def fd(words: tuple[str, ...]) -> Effects:
    """What an fd command does."""
    line = read_line(words, _FD)
    if line.unknown:
        return unknown_word("fd", line)
    return Effects(reads=tuple(text for text, _ in line.operands[1:]))


def _without_pattern(line: Line, *instead: str) -> tuple[str, ...]:
    files = tuple(text for text, _ in line.operands)
    return files if line.has(*instead) else files[1:]


def find(words: tuple[str, ...]) -> Effects:
    """What a find command does; what it starts is in `runs`, with `{}` for each file found."""
    at = 1
    follows = False
    while at < len(words) and words[at] in ("-L", "-H", "-P", "-O1", "-O2", "-O3"):
        follows = follows or words[at] == "-L"
        at += 1
    starts: list[str] = []
    while at < len(words) and not words[at].startswith("-") and words[at] not in "()!,":
        starts.append(words[at])
        at += 1
    runs: list[tuple[str, ...]] = []
    writes: list[str] = []
    compared: list[str] = []
    while at < len(words):
        word = words[at]
        if word in _TESTS:
            at += 1
        elif word in _TESTS_WITH_VALUE and at + 1 < len(words):
            at += 2
        elif word in _TESTS_WITH_FILE and at + 1 < len(words):
            compared.append(words[at + 1])
            at += 2
        elif word == "-follow":
            follows = True
            at += 1
        elif word in _WRITES and at + _WRITES[word] < len(words):
            writes.append(words[at + 1])
            at += 1 + _WRITES[word]
        elif word == "-exec" and (end := _end_of_command(words, at)):
            runs.append(words[at + 1 : end])
            at = end + 1
        else:
            return opaque(f"{word[:40]} of find is not known, or runs something", at)
    starts_at = tuple(starts) or (".",)
    return Effects(
        reads=(*starts_at, *compared),
        follows=follows,
        writes=tuple(writes),
        runs=tuple(runs),
        trees=starts_at if follows else (),
    )


def _end_of_command(words: tuple[str, ...], at: int) -> int:
    """The index of the `;` or `+` that ends an `-exec`; 0 without one."""
    for end in range(at + 2, len(words)):
        if words[end] == ";" or (words[end] == "+" and words[end - 1] == FOUND):
            return end
    return 0
