# Sourced by the scripts of this folder: where things are, messages, progress, the checks that come first.
# Messages and progress go to stderr; stdout is for what a script is asked for (a path, a table).

set -euo pipefail
shopt -s inherit_errexit

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${PEAKBENCH_CACHE:-$repository/.cache}
python=${PEAKBENCH_PYTHON:-python3}
# Who keeps a cache keeps what was compiled there, too.
[[ -z ${PEAKBENCH_CACHE-} ]] || export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}
# The release of LibTorch, by default the first of the list; what is made for another has its version in its name.
torch_releases=$repository/cmake/libtorch_releases.txt
default_torch=$(awk '/^[0-9]/ { print $1; exit }' "$torch_releases")
torch_version=${PEAKBENCH_TORCH_VERSION:-$default_torch}
torch_suffix=
[[ $torch_version == "$default_torch" ]] || torch_suffix=-torch-$torch_version

say() { printf '%s\n' "$*" >&2; }

# fail MESSAGE [ADVICE...]: what went wrong, then what to do about it, one line each.
fail() {
  say "error: $1"
  shift
  local advice
  for advice in "$@"; do say "       $advice"; done
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# --- Checks -------------------------------------------------------------------------------------------

need_architecture() {
  local system
  system="$(uname -s) $(uname -m)"
  [[ $system == "Linux x86_64" ]] || fail "this machine is $system; Peakbench is built and tested on Linux x86_64." \
    "LibTorch's pinned wheel and the emulated card exist for that alone."
}

# is_torch_release VERSION: whether Peakbench builds with it.
is_torch_release() { grep -qxF "$1" <(awk '/^[0-9]/ { print $1 }' "$torch_releases"); }

# need_disk FOLDER GIB WHAT_FOR
need_disk() {
  mkdir -p "$1" 2>/dev/null || fail "cannot create $1." "Set PEAKBENCH_CACHE to a folder you may write to."
  [[ -w $1 ]] || fail "$1 is not writable." "Set PEAKBENCH_CACHE to a folder you may write to."
  local free_mib
  free_mib=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
  ((free_mib >= $2 * 1024)) || fail "$3 needs $2 GiB of disk; $1 has $((free_mib / 1024)) GiB free." \
    "Free some, or set PEAKBENCH_CACHE to a folder on a larger disk."
}

need_python() {
  have "$python" || fail "$python was not found." "Run ci/packages, or set PEAKBENCH_PYTHON to a Python of 3.10 or later."
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$python is $("$python" --version 2>&1); 3.10 or later is needed." "Set PEAKBENCH_PYTHON to a later one."
}

# Which file the Python is that runs, whatever name it was called by: a link, pyenv's shim and a virtual environment's are the one behind them.
python_file() { "$python" -c 'import os, sys; print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))'; }

# need_module MODULE PACKAGE: a module of Python that Debian splits off.
need_module() {
  "$python" -c "import $1" 2>/dev/null || fail "$(command -v "$python") has no module $1." \
    "Debian and Ubuntu: ci/packages installs $2. Or set PEAKBENCH_PYTHON to a Python that has it."
}

# --- What changed ---------------------------------------------------------------------------------------

commit_named() { git -C "$repository" rev-parse --verify --quiet "$1^{commit}"; }

# The newest commit that is a day older than the one that is checked out; where there is none, as in a shallow clone, the empty tree.
commit_before_today() {
  local newest commit
  newest=$(git -C "$repository" log -1 --format=%ct)
  commit=$(git -C "$repository" log -1 --format=%H --before="@$((newest - 24 * 3600))")
  echo "${commit:-$(git -C "$repository" hash-object -t tree /dev/null)}"
}

# What passed in this cache: of WHAT (tests, headers, sanitizers) the commit, and of tests the names of those that passed, each after a sum of how
# it is run. Another compiler or LibTorch has a file of its own.
passed_file() { echo "$cache/passed/$1$torch_suffix-$(c++ --version 2>/dev/null | head -n 1 | cksum | cut -d' ' -f1)"; }

# passed_commit WHAT: the commit of which it passed; nothing where none is known.
passed_commit() {
  local commit
  commit=$(head -n 1 "$(passed_file "$1")" 2>/dev/null) && commit_named "$commit" || true
}

# The commit that is checked out, if the files are as it has them.
clean_commit() {
  local status
  status=$(git -C "$repository" status --porcelain --untracked-files=all) && [[ -z $status ]] && commit_named HEAD || true
}

# remember_passed WHAT COMMIT [FILE]: all of it passed, or had passed of a remembered commit from which nothing that it needs differs. FILE has the
# names of tests. COMMIT is what clean_commit said before it began: where it is none, or another by now, nobody knows what passed.
remember_passed() {
  local file
  file=$(passed_file "$1")
  [[ $2 && $(clean_commit) == "$2" ]] || return 0
  mkdir -p "${file%/*}"
  { echo "$2"; [[ -z ${3:-} ]] || cat "$3"; } >"$file.$$"
  mv "$file.$$" "$file"
}

# differs_from COMMIT PATTERN...: whether a file of these differs from it, is gone or is not committed yet.
differs_from() {
  local commit=$1 changed
  shift
  changed=$(git -C "$repository" diff --name-only "$commit" -- "$@" && git -C "$repository" ls-files --others --exclude-standard -- "$@") || return 0
  [[ $changed ]]
}

# --- Progress -----------------------------------------------------------------------------------------

# Files that a script leaves behind only while it runs.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/peakbench.XXXXXX")
task_pid=
leave() {
  [[ -z $task_pid ]] || kill "$task_pid" 2>/dev/null || true
  rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The last thing a log says, short enough for one line.
last_line() { tail -c 2000 "$1" 2>/dev/null | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | tr -cd '[:print:]' | cut -c "1-$2"; }

# time_left SECONDS LINE: ", about 2 min left", if LINE is how ninja counts its steps, [120/322], and a tenth of them took SECONDS or less.
time_left() {
  [[ $2 =~ ^\[([0-9]+)/([0-9]+)\] ]] || return 0
  local finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
  ((finished * 10 >= all && finished < all)) || return 0
  local left=$(($1 * (all - finished) / finished))
  if ((left < 50)); then echo ", less than a minute left"; else echo ", about $(((left + 30) / 60)) min left"; fi
}

# task MESSAGE COMMAND...: runs it with its output in a log. Silent when it ends within two seconds; after that one line that
# keeps its elapsed time up to date on a terminal, plain lines now and then elsewhere. Returns the command's status; the log
# stays at $task_log until the next task.
task_log=$scratch/task.log
task() {
  local message=$1 status=0 began=$SECONDS shown=0 next=30 elapsed width line where
  shift
  "$@" >"$task_log" 2>&1 </dev/null &
  task_pid=$!
  while kill -0 "$task_pid" 2>/dev/null; do
    sleep 0.1
    elapsed=$((SECONDS - began))
    ((elapsed >= 2)) || continue
    if [[ -t 2 ]] || ((shown && elapsed >= next)); then
      line=$(last_line "$task_log" 100)
      where="$message: $elapsed s$(time_left "$elapsed" "$line")"
    fi
    if [[ -t 2 ]]; then
      width=$(($(tput cols 2>/dev/null || echo 100) - ${#where} - 3))
      printf '\r\033[K%s  %s' "$where" "${line:0:$((width > 10 ? width : 10))}" >&2
      sleep 0.4
    elif ((shown == 0)); then
      say "$message ..."
    elif ((elapsed >= next)); then
      say "$where  $line"
      next=$((next + 30))
    fi
    shown=1
  done
  wait "$task_pid" || status=$?
  task_pid=
  if ((shown)); then
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    ((status)) || say "$message: done in $((SECONDS - began)) s"
  fi
  return "$status"
}

# What the log of the last task says of its failure: where the first error is, or its last lines; and the likely cause.
explain_task() {
  local first
  # pip says that something failed before it shows what.
  first=$(grep -nE '(^|[[:space:]])FAILED: |CMake Error|(^|[: ])(fatal )?error: ' "$task_log" |
    grep -v 'subprocess-exited-with-error' | head -n 1 | cut -d: -f1 || true)
  { if [[ -n $first ]]; then tail -n "+$first" "$task_log" | head -n 20; else tail -n 6 "$task_log"; fi; } |
    cut -c 1-240 | sed 's/^/  | /' >&2
  if grep -qiE 'no space left|disk quota' "$task_log"; then
    say "       The disk is full: $(df -Ph "$cache" 2>/dev/null | awk 'NR == 2 { print $6, "has", $4, "free" }')."
  elif grep -qiE 'temporary failure|could not resolve|connection (error|refused|reset|broken|timed out)|network is unreachable|new connection|timed? ?out|unable to connect|max retries|incomplete read|failed to fetch' "$task_log"; then
    say "       It looks like the network: this machine could not reach the package index, or lost it on the way."
    say "       Behind a proxy, set https_proxy; what was fetched is kept, so run the same command again."
  elif grep -qiE 'no matching distribution|could not find a version' "$task_log"; then
    say "       The index has no package for $("$python" --version 2>&1) on $(uname -m), or was not reached."
  elif grep -qiE 'killed|cannot allocate memory|out of memory' "$task_log"; then
    say "       Memory ran out; fewer jobs at a time need less (PEAKBENCH_JOBS=1)."
  fi
  [[ -z ${CI-} ]] || sed 's/^/  | /' "$task_log" | tail -n 200 >&2
}

# must MESSAGE COMMAND...: a task that the script cannot go on without.
must() {
  local status=0
  task "$@" || status=$?
  ((status)) || return 0
  if ((status >= 128)); then exit "$status"; fi
  say "error: $1: failed (exit status $status)."
  explain_task
  exit 1
}

# try_again TIMES COMMAND...: for what depends on a network; waits a little longer each time.
try_again() {
  local times=$1 attempt status=1
  shift
  for ((attempt = 1; attempt <= times; attempt++)); do
    status=0
    "$@" || status=$?
    if ((status == 0 || attempt == times)); then break; fi
    echo "attempt $attempt of $times failed; again in $((attempt * 4)) s"
    sleep $((attempt * 4))
  done
  return "$status"
}

# Jobs of a build: a translation unit with LibTorch's headers takes up to 2 GiB.
jobs() {
  local memory_gib cores
  memory_gib=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  cores=$(nproc)
  echo "${PEAKBENCH_JOBS:-$((memory_gib / 2 < 1 ? 1 : memory_gib / 2 < cores ? memory_gib / 2 : cores))}"
}
