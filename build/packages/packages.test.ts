/** Tests of the files of packages, and of the files of a release that refer to them. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { file, gzip, tar } from '../archives.ts'
import { aptRepository, controlText, sourcesText } from './apt-repository.ts'
import { packageFiles, requiredSettings } from './files.ts'
import { formula } from './formula.ts'
import { packageName, scriptText } from './nfpm.ts'
import { integrity, nixExpression, nixFlake } from './nix.ts'
import { releasePackages } from './release-packages.ts'
import { packageVersion } from './version.ts'

const TIME = 1_700_000_000
const RELEASE = {
  version: '1.2.3',
  url: 'https://example.com/releases',
  digests: new Map([
    ['linux-x64', '11'.repeat(32)],
    ['linux-x64-musl', '22'.repeat(32)],
    ['linux-arm64', '33'.repeat(32)],
    ['darwin-x64', '44'.repeat(32)],
    ['darwin-arm64', '55'.repeat(32)],
  ]),
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-packages-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function written(name: string, text: string): string {
  const path = join(directory(), name)
  writeFileSync(path, text)
  return path
}

function run(command: string, args: readonly string[]) {
  return spawnSync(command, args, { encoding: 'utf8', timeout: 240_000 })
}

/** Returns a Debian package that has a control file alone. */
function debianPackage(version: string, architecture: string) {
  const control = [
    'Package: svc',
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    'Description: One line',
    ' and another one',
    '',
  ].join('\n')
  const members: [string, Buffer][] = [
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(tar([file('./control', control)], TIME))],
    ['data.tar.gz', gzip(tar([], TIME))],
  ]
  const parts = members.flatMap(([name, bytes]) => [
    Buffer.from(
      `${name.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}` +
        `${String(bytes.length).padEnd(10)}\`\n`,
    ),
    bytes,
    Buffer.alloc(bytes.length % 2, '\n'),
  ])
  const bytes = Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
  return { name: `svc_${version}_${architecture}.deb`, bytes }
}

test.each([
  ['1.2.3', '1.2.3'],
  ['1.2.3-rc.1', '1.2.3~rc.1'],
  ['1.2.3-alpha-2', '1.2.3~alpha.2'],
  ['1.2.3+build.5', '1.2.3+build.5'],
  ['1.2.3-rc.1+abc', '1.2.3~rc.1+abc'],
])('the version %s has the form %s in packages', (version, expected) => {
  expect(packageVersion(version)).toBe(expected)
})

test('a version that is not semantic has no form in packages', () => {
  for (const version of ['1.2', 'v1.2.3', '1.2.3-', '1.2.3_1', '']) {
    expect(() => packageVersion(version)).toThrow('is not a semantic version')
  }
})

test.runIf(existsSync('/usr/bin/dpkg'))('a pre-release is older than its release', () => {
  const order = ['1.2.2', '1.2.3-alpha.1', '1.2.3-rc.1', '1.2.3-rc.2', '1.2.3', '1.2.4-rc.1']
  for (const [index, older] of order.slice(0, -1).entries()) {
    const newer = order[index + 1]!
    const args = ['--compare-versions', packageVersion(older), 'lt', packageVersion(newer)]
    expect(run('/usr/bin/dpkg', args).status, `${older} < ${newer}`).toBe(0)
  }
})

test('packages have the names that each system expects', () => {
  expect(packageName('linux-x64', 'deb', '1.2.3')).toBe('svc_1.2.3_amd64.deb')
  expect(packageName('linux-arm64', 'deb', '1.2.3-rc.1')).toBe('svc_1.2.3~rc.1_arm64.deb')
  expect(packageName('linux-x64', 'rpm', '1.2.3')).toBe('svc-1.2.3.x86_64.rpm')
  expect(packageName('linux-arm64', 'rpm', '1.2.3')).toBe('svc-1.2.3.aarch64.rpm')
})

test.each([
  ['deb', 'zsh/vendor-completions', '/usr/share/doc/svc/copyright'],
  ['rpm', 'zsh/site-functions', '/usr/share/licenses/svc/LICENSE'],
] as const)(
  'a package for %s has its files where the system looks for them',
  (format, zsh, licence) => {
    const source = {
      executable: '/x',
      licences: 'MIT',
      version: '1.2.3',
      time: TIME,
      maintainer: 'x',
    }
    const files = packageFiles(format, source)
    const described = files.map(({ path, mode, kind }) => `${kind} ${mode.toString(8)} ${path}`)
    for (const line of [
      'directory 750 /etc/svc',
      'config 640 /etc/svc/environment',
      'file 755 /usr/bin/svc-server',
      'symlink 777 /usr/bin/svc',
      'file 644 /usr/lib/systemd/system/svc-server.service',
      'file 644 /usr/lib/sysusers.d/svc.conf',
      'file 644 /usr/lib/tmpfiles.d/svc.conf',
      'file 644 /usr/share/bash-completion/completions/svc',
      'file 644 /usr/share/fish/vendor_completions.d/svc-server.fish',
      `file 644 /usr/share/${zsh}/_svc`,
      'file 644 /usr/share/man/man1/svc.1.gz',
      'file 644 /usr/share/man/man8/svc-server.8.gz',
      'file 644 /usr/share/doc/svc/THIRD-PARTY-LICENSES.gz',
      'file 644 /usr/share/doc/svc/examples/nginx.conf',
      `file 644 ${licence}`,
    ]) {
      expect(described).toContain(line)
    }
    const text = (wanted: string) => files.find(({ path }) => path === wanted)!.bytes!.toString()
    expect(text('/usr/share/svc/installed-by')).toBe(`${format}\n`)
    const unit = text('/usr/lib/systemd/system/svc-server.service')
    expect(unit).toContain('ExecStart=/usr/bin/svc-server serve\n')
    expect(unit).not.toContain('/usr/local')
    expect(new Set(files.map(({ path }) => path)).size).toBe(files.length)
    expect(
      described.filter((line) => /^file/.test(line) && !/^file (?:644|755) /.test(line)),
    ).toEqual([])
  },
)

test('the installed settings are those of the template that are set', () => {
  const template = '# About.\n\n# Needed.\nA_B=1\n\n# Optional.\n# C_D=2\n\n# Also needed.\nE_F=3\n'
  const text = requiredSettings(template)
  expect(text).toMatch(/\n\n# Needed\.\nA_B=1\n\n# Also needed\.\nE_F=3\n$/)
  expect(text).not.toContain('C_D')
})

test.each([
  'deb-postinst',
  'deb-prerm',
  'deb-postrm',
  'rpm-pre',
  'rpm-post',
  'rpm-preun',
  'rpm-postun',
])('a POSIX shell parses the script %s, which ends at the first failure', (name) => {
  const text = scriptText(name)
  expect(text).toMatch(/^#!\/bin\/sh\nset -e\n/)
  expect(run('/bin/sh', ['-n', written(name, text)])).toMatchObject({ status: 0, stderr: '' })
})

test('a repository lists each package under its architecture, with size and digest', () => {
  const packages = [debianPackage('1.2.3', 'amd64'), debianPackage('1.2.3', 'arm64')]
  const files = aptRepository(packages, TIME)
  expect([...files.keys()]).toEqual([
    'dists/stable/main/binary-amd64/Packages',
    'dists/stable/main/binary-amd64/Packages.gz',
    'dists/stable/main/binary-arm64/Packages',
    'dists/stable/main/binary-arm64/Packages.gz',
    'dists/stable/Release',
    'pool/main/s/svc/svc_1.2.3_amd64.deb',
    'pool/main/s/svc/svc_1.2.3_arm64.deb',
  ])
  const list = files.get('dists/stable/main/binary-arm64/Packages')!.toString()
  expect(list).toContain('Architecture: arm64\n')
  expect(list).not.toContain('amd64')
  expect(list).toContain('Filename: pool/main/s/svc/svc_1.2.3_arm64.deb\n')
  expect(list).toContain(`Size: ${packages[1]!.bytes.length}\n`)
  expect(list).toMatch(/\nSHA256: [0-9a-f]{64}\nDescription: One line\n and another one\n$/)
  const release = files.get('dists/stable/Release')!.toString()
  expect(release).toContain('Architectures: amd64 arm64\n')
  expect(release).toContain('Date: Tue, 14 Nov 2023 22:13:20 UTC\n')
  expect(release.match(/^ [0-9a-f]{64} \d+ main\/binary-/gm)).toHaveLength(4)
})

test('the same packages give the same repository, and another time gives another one', () => {
  const packages = [debianPackage('1.2.3', 'amd64')]
  const bytes = (time: number) => Buffer.concat([...aptRepository(packages, time).values()])
  expect(bytes(TIME).equals(bytes(TIME))).toBe(true)
  expect(bytes(TIME).equals(bytes(TIME + 1))).toBe(false)
})

test('a file that is not a package of Debian is rejected', () => {
  expect(() => controlText({ name: 'x.deb', bytes: Buffer.from('no archive') })).toThrow('ar')
  const empty = { name: 'x.deb', bytes: Buffer.from('!<arch>\n') }
  expect(() => controlText(empty)).toThrow('x.deb has no control.tar.gz')
})

test('the source of apt names the repository and the file of its key', () => {
  expect(sourcesText('https://example.com/apt')).toBe(
    '# /etc/apt/sources.list.d/svc.sources\nTypes: deb\nURIs: https://example.com/apt\n' +
      'Suites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/svc.asc\n',
  )
})

test('the formula has the archive of each machine, and none of a machine without one', () => {
  const text = formula(RELEASE)
  for (const [target, digest] of RELEASE.digests) {
    const pair = `url "${RELEASE.url}/svc-1.2.3-${target}.tar.gz"\n      sha256 "${digest}"`
    expect(text.includes(pair), target).toBe(target !== 'linux-x64-musl')
  }
  const linux = formula({ ...RELEASE, digests: new Map([['linux-x64', '11'.repeat(32)]]) })
  expect(linux).not.toContain('on_macos')
  expect(linux).not.toContain('on_arm')
})

/** A class that reads a formula as Homebrew does on a machine, and prints what it would do. */
const FORMULA_READER = `
require 'json'
class Formula
  FIELDS = {}
  class << self
    %i[desc homepage version license url sha256].each do |name|
      define_method(name) { |value| FIELDS[name] = value }
    end
    def on_macos; yield if ARGV[1] == 'macos'; end
    def on_linux; yield if ARGV[1] == 'linux'; end
    def on_arm; yield if ARGV[2] == 'arm'; end
    def on_intel; yield if ARGV[2] == 'intel'; end
    def service(&block); FIELDS[:service] = true; end
    def test(&block); FIELDS[:test] = true; end
  end
end
load ARGV[0]
abort 'no install' unless Svc.method_defined?(:install)
puts JSON.generate(Formula::FIELDS)
`
const RUBY = '/usr/bin/ruby'

test.runIf(existsSync(RUBY)).each([
  ['macos', 'arm', 'darwin-arm64'],
  ['macos', 'intel', 'darwin-x64'],
  ['linux', 'arm', 'linux-arm64'],
  ['linux', 'intel', 'linux-x64'],
])(
  'ruby reads the formula on %s with %s as that of %s',
  { tags: ['slow'] },
  (system, machine, target) => {
    const path = written('svc.rb', formula(RELEASE))
    expect(run(RUBY, ['-wc', path])).toMatchObject({ status: 0, stderr: '' })
    const reader = written('reader.rb', FORMULA_READER)
    const { stdout, stderr } = run(RUBY, [reader, path, system, machine])
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toMatchObject({
      version: '1.2.3',
      license: 'Apache-2.0',
      url: `${RELEASE.url}/svc-1.2.3-${target}.tar.gz`,
      sha256: RELEASE.digests.get(target),
      service: true,
      test: true,
    })
  },
)

test('a release has the formula and the Nix files, or says that it leaves them out', () => {
  const released = (environment: Record<string, string>) => {
    const names: string[] = []
    const said: string[] = []
    releasePackages({
      version: '1.2.3',
      time: TIME,
      out: directory(),
      digests: new Map([['darwin-arm64', '55'.repeat(32)]]),
      environment,
      isAptSigned: false,
      published: null,
      put: (name) => names.push(name),
      say: (line) => said.push(line),
    })
    return { names, said }
  }
  expect(released({ SVC_RELEASE_URL: 'https://example.com/' })).toEqual({
    names: ['svc.rb', 'default.nix', 'flake.nix'],
    said: [],
  })
  const reason = 'svc.rb and the Nix expressions are left out: SVC_RELEASE_URL is not set.'
  expect(released({})).toEqual({ names: [], said: [reason] })
})

test('a digest has the form of Subresource Integrity', () => {
  expect(integrity('00'.repeat(32))).toBe(`sha256-${'A'.repeat(43)}=`)
})

/** The parts of nixpkgs that the expression takes, for one system. */
const NIX_STUB = `system: rec {
  lib = {
    optional = condition: value: if condition then [ value ] else [ ];
    optionalString = condition: text: if condition then text else "";
    licenses.asl20 = "Apache-2.0";
    sourceTypes.binaryNativeCode = "binary";
  };
  stdenv = {
    hostPlatform = { inherit system; isLinux = builtins.match ".*-linux" system != null; };
    buildPlatform.canExecute = other: true;
    mkDerivation = attributes: attributes;
  };
  fetchurl = archive: archive;
  installShellFiles = "installShellFiles";
  patchelf = "patchelf";
  callPackage = function: arguments: function {
    inherit lib stdenv fetchurl installShellFiles patchelf;
  };
}`
const NIX = '/usr/bin/nix-instantiate'

function evaluate(expression: string) {
  const store = directory()
  const env = { PATH: process.env.PATH, HOME: store, NIX_STATE_DIR: store, NIX_STORE_DIR: store }
  const args = ['--eval', '--strict', '--json', '--expr', expression]
  return spawnSync(NIX, args, { encoding: 'utf8', env, timeout: 240_000 })
}

test.runIf(existsSync(NIX)).each([
  ['x86_64-linux', 'linux-x64', ['installShellFiles', 'patchelf']],
  ['aarch64-linux', 'linux-arm64', ['installShellFiles', 'patchelf']],
  ['x86_64-darwin', 'darwin-x64', ['installShellFiles']],
  ['aarch64-darwin', 'darwin-arm64', ['installShellFiles']],
])('Nix evaluates the expression for %s with the archive of %s', (system, target, inputs) => {
  const path = written('default.nix', nixExpression(RELEASE))
  const { status, stdout, stderr } = evaluate(
    `import ${path} { pkgs = (${NIX_STUB}) "${system}"; }`,
  )
  expect(status, stderr).toBe(0)
  const derivation = JSON.parse(stdout)
  expect(derivation).toMatchObject({
    version: '1.2.3',
    nativeBuildInputs: inputs,
    src: {
      url: `${RELEASE.url}/svc-1.2.3-${target}.tar.gz`,
      hash: integrity(RELEASE.digests.get(target)!),
    },
  })
  expect(derivation.postFixup.includes('--set-interpreter')).toBe(system.endsWith('linux'))
})

test.runIf(existsSync(NIX))('Nix has no package for a machine without an archive', () => {
  const path = written('default.nix', nixExpression(RELEASE))
  const result = evaluate(`(import ${path} { pkgs = (${NIX_STUB}) "riscv64-linux"; }).src`)
  expect(result.status).not.toBe(0)
  expect(result.stderr).toContain('svc has no build for riscv64-linux')
})

test.runIf(existsSync(NIX))('the flake has a package for each machine', () => {
  const work = directory()
  writeFileSync(join(work, 'default.nix'), nixExpression(RELEASE))
  writeFileSync(join(work, 'flake.nix'), nixFlake())
  const { status, stdout, stderr } = evaluate(`
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      legacyPackages = builtins.listToAttrs (map
        (system: { name = system; value = (${NIX_STUB}) system; }) systems);
      nixpkgs = { inherit legacyPackages; };
      outputs = (import ${join(work, 'flake.nix')}).outputs { inherit nixpkgs; };
    in builtins.mapAttrs (name: value: value.default.src.url) outputs.packages
  `)
  expect(status, stderr).toBe(0)
  expect(Object.keys(JSON.parse(stdout))).toHaveLength(4)
})
