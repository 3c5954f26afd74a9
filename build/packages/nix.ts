/** Renders the Nix expressions of a release, which install its archives for glibc and macOS. */
import type { ReleasedArchives } from './formula.ts'

/** Names of the machines for Nix, by target. */
const SYSTEMS = {
  'linux-x64': 'x86_64-linux',
  'linux-arm64': 'aarch64-linux',
  'darwin-x64': 'x86_64-darwin',
  'darwin-arm64': 'aarch64-darwin',
} as const

/** Returns a digest in hex in the form of Subresource Integrity. */
export function integrity(hex: string): string {
  return `sha256-${Buffer.from(hex, 'hex').toString('base64')}`
}

/** Returns `default.nix`, with the machines whose archives the release has. */
export function nixExpression({ version, url, digests }: ReleasedArchives): string {
  const archives = Object.entries(SYSTEMS).flatMap(([target, system]) => {
    const digest = digests.get(target)
    if (digest === undefined) return []
    return `    ${system} = {
      url = "${url}/svc-${version}-${target}.tar.gz";
      hash = "${integrity(digest)}";
    };`
  })
  return `# svc ${version}: nix-build, or pkgs.callPackage with the function below.
{ pkgs ? import <nixpkgs> { } }:

let
  archives = {
${archives.join('\n')}
  };

  package = { lib, stdenv, fetchurl, installShellFiles, patchelf }:
    stdenv.mkDerivation {
      pname = "svc";
      version = "${version}";

      src = fetchurl (archives.\${stdenv.hostPlatform.system}
        or (throw "svc has no build for \${stdenv.hostPlatform.system}"));
      sourceRoot = ".";

      nativeBuildInputs = [ installShellFiles ]
        ++ lib.optional stdenv.hostPlatform.isLinux patchelf;

      # The code is a section of the executable: without it, only the runtime would be left. The
      # loader of glibc finds its own libraries; a path of libraries in the executable breaks it.
      dontStrip = true;
      dontPatchELF = true;

      installPhase = ''
        runHook preInstall
        install -D -m 755 svc-server "$out/bin/svc-server"
        ln -s svc-server "$out/bin/svc"
        installManPage share/man/man1/* share/man/man8/*
        installShellCompletion --bash share/bash-completion/completions/*
        installShellCompletion --fish share/fish/vendor_completions.d/*
        installShellCompletion --zsh share/zsh/site-functions/*
        mkdir -p "$out/share/doc/svc" "$out/share/svc"
        cp -r LICENSE THIRD-PARTY-LICENSES CHANGELOG.md dist-config "$out/share/doc/svc"
        echo nix > "$out/share/svc/installed-by"
        runHook postInstall
      '';

      postFixup = lib.optionalString stdenv.hostPlatform.isLinux ''
        patchelf --set-interpreter "$(cat "$NIX_CC/nix-support/dynamic-linker")" \\
          "$out/bin/svc-server"
      '';

      doInstallCheck = stdenv.buildPlatform.canExecute stdenv.hostPlatform;
      installCheckPhase = ''
        "$out/bin/svc" --version | grep -F "${version}"
        "$out/bin/svc-server" version | grep -F "${version}"
      '';

      meta = {
        description = "Application backend in one executable";
        license = lib.licenses.asl20;
        mainProgram = "svc";
        platforms = builtins.attrNames archives;
        sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
      };
    };
in
pkgs.callPackage package { }
`
}

/** Returns `flake.nix`, which takes the expression beside it. */
export function nixFlake(): string {
  const systems = Object.values(SYSTEMS).map((system) => `"${system}"`)
  return `{
  description = "svc, an application backend in one executable";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      systems = [ ${systems.join(' ')} ];
      forEach = function: builtins.listToAttrs (map
        (system: {
          name = system;
          value = function nixpkgs.legacyPackages.\${system};
        })
        systems);
    in
    {
      packages = forEach (pkgs: { default = import ./default.nix { inherit pkgs; }; });
    };
}
`
}
