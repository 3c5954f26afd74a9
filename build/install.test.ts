/**
 * Tests of the installer with a release of their own, whose archives hold a small program in place
 * of the executable, so that each case takes milliseconds. They run under the plainest shells.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  ARTEFACT,
  type ReleaseOptions,
  runInstaller,
  SHARED,
  TARGET,
  VERSION,
  writeRelease,
} from './origin/installer-fixture.ts'

const ROOT = join(import.meta.dirname, '..')

let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-install-'))
  mkdirSync(join(work, 'mirror'))
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

function release(options: ReleaseOptions = {}): void {
  writeRelease(work, options)
}

function install(
  args: readonly string[] = [],
  environment: Record<string, string> = {},
  shell = '/bin/sh',
): SpawnSyncReturns<string> {
  return runInstaller(work, args, environment, shell)
}

test('an installation runs under both names and leaves no other file behind', () => {
  release()
  const result = install()
  expect(result.stderr).toBe('')
  expect(result.status).toBe(0)
  expect(readdirSync(join(work, 'bin')).sort()).toEqual(['.svc-install', 'svc', 'svc-server'])
  for (const name of ['svc', 'svc-server']) {
    const path = join(work, 'bin', name)
    expect(statSync(path).mode & 0o777).toBe(0o755)
    expect(spawnSync(path, ['version'], { encoding: 'utf8' }).stdout).toContain(VERSION)
  }
  expect(readdirSync(work).filter((name) => name.startsWith('tmp'))).toEqual([])
})

test('a second run changes nothing, or repairs what was changed', () => {
  release()
  install()
  const mirror = join(work, 'mirror')
  rmSync(mirror, { recursive: true })
  expect(install().stdout).toContain('already installed')
  writeFileSync(join(work, 'bin/svc-server'), 'damaged')
  expect(install().status).toBe(1)
  mkdirSync(mirror)
  release()
  expect(install().stdout).toContain('Installed')
  expect(readFileSync(join(work, 'bin/svc-server'), 'utf8')).toContain('echo')
})

test('a dry run changes nothing', () => {
  release()
  const result = install(['--dry-run', '--service'])
  expect(result.status).toBe(0)
  expect(result.stdout).toContain('Would fetch')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('a tampered archive is rejected and nothing is installed', () => {
  release()
  const path = join(work, 'mirror', ARTEFACT)
  const bytes = readFileSync(path)
  bytes[bytes.length - 9]! ^= 1
  writeFileSync(path, bytes)
  const result = install()
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('Nothing was installed')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('an executable that reports another version is rejected', () => {
  release({ says: '1.2.3' })
  const result = install()
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('not 9.9.9')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

/** The loader of musl prints this, and a line for each symbol. */
const WITHOUT_LIBRARY = 'Error loading shared library libstdc++.so.6: No such file or directory'

test('the installer asks the user of a machine without libstdc++ to install it', () => {
  release({ script: `echo '${WITHOUT_LIBRARY}' >&2; echo 'Error relocating' >&2; exit 127` })
  const result = install()
  expect(result.status).toBe(1)
  expect(result.stderr).toBe(
    'install.sh: The executable needs libstdc++. ' +
      'Install it (Alpine: apk add libstdc++) and run this again.\n',
  )
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('an executable that does not run is not installed, and its error is shown', () => {
  release({ script: 'echo "version GLIBC_2.99 not found" >&2; exit 1' })
  const result = install()
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('GLIBC_2.99 not found\ninstall.sh: The executable does not run')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('the old executable still works after a failed upgrade', () => {
  release()
  install()
  release({ says: '1.2.3' })
  expect(install().status).toBe(1)
  const path = join(work, 'bin/svc')
  expect(spawnSync(path, ['version'], { encoding: 'utf8' }).stdout).toContain(VERSION)
})

test('an unsupported machine and a plain HTTP mirror are rejected', () => {
  release()
  const unknown = install([], { SVC_TARGET: 'plan9-mips' })
  expect(unknown.status).toBe(1)
  expect(unknown.stderr).toContain('There are: darwin-arm64 linux-x64')
  const plain = install([], { SVC_BASE_URL: 'http://mirror.example.com' })
  expect(plain.status).toBe(1)
  expect(plain.stderr).toContain('only https')
})

test.each([
  'http://127.0.0.1:1@evil.test',
  'http://127.0.0.1@evil.test',
  'http://127.0.0.1:80.evil.test/x',
  'http://127.0.0.1:1:2',
  'http://127.0.0.1:/x',
  'http://127.0.0.1:8080?@evil.test/',
  'http://127.0.0.1:8080#@evil.test/',
  'http://127.0.0.1:8080\\\\@evil.test/',
  'http://127.0.0.1.evil.test/',
  'http://[::1]:1@evil.test',
  'http://[::1].evil.test',
  'http://[::1',
  'http://localhost:1',
  'HTTP://127.0.0.1:1',
])('%s is not a loopback address', (url) => {
  release()
  const result = install([], { ...fakeCurl(), SVC_BASE_URL: url })
  expect(result.stderr).toContain('only https')
  expect(existsSync(join(work, 'curl-was-run'))).toBe(false)
})

test.each(['http://127.0.0.1', 'http://127.0.0.1:8080', 'http://[::1]', 'http://[::1]:8080/a/b'])(
  '%s is a loopback address',
  (url) => {
    release()
    expect(install([], { ...fakeCurl(), SVC_BASE_URL: url }).stderr).toContain('failed')
    expect(readFileSync(join(work, 'curl-was-run'), 'utf8')).toContain(`${url}/${ARTEFACT}`)
  },
)

/** Returns a PATH whose curl records its arguments and fails. */
function fakeCurl(): Record<string, string> {
  mkdirSync(join(work, 'curl'))
  const stub = `#!/bin/sh\necho "$@" >"${work}/curl-was-run"\nexit 7\n`
  writeFileSync(join(work, 'curl/curl'), stub, { mode: 0o755 })
  return { PATH: `${join(work, 'curl')}:/usr/bin:/bin:/usr/sbin:/sbin` }
}

test('the installer detects the target of this machine', () => {
  release()
  const { stdout } = install(['--dry-run'], { SVC_TARGET: '' })
  if (process.platform === 'linux' && process.arch === 'x64') expect(stdout).toContain(TARGET)
})

test('a signature is verified if there is a key, and can be required', () => {
  release()
  expect(install([], { SVC_REQUIRE_SIGNATURE: '1' }).stderr).toContain('public key')
  release({ signed: true })
  expect(install([], { SVC_REQUIRE_SIGNATURE: '1' }).stderr).toBe('')
  rmSync(join(work, 'bin'), { recursive: true })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pinned = join(work, 'pinned.pem')
  writeFileSync(pinned, other.publicKey.export({ type: 'spki', format: 'pem' }))
  const result = install([], { SVC_PUBLIC_KEY_FILE: pinned })
  expect(result.stderr).toContain('signature of SHA256SUMS is wrong')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('an artefact that cannot be verified is not installed', () => {
  release()
  const tools = join(work, 'tools')
  mkdirSync(tools)
  for (const tool of [
    'uname',
    'mktemp',
    'tar',
    'gzip',
    'mv',
    'cp',
    'rm',
    'mkdir',
    'chmod',
    'ln',
    'grep',
    'cut',
    'id',
    'tr',
    'cat',
  ]) {
    const found = spawnSync('/bin/sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' })
    spawnSync('ln', ['-s', found.stdout.trim(), join(tools, tool)])
  }
  const result = install([], { PATH: tools })
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('nothing is installed unverified')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

/** The distance of points in the last lines, of which the short run has every fifth. */
const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 5
const SHELLS = ['/bin/sh', '/bin/bash', '/bin/busybox sh'].filter((shell) =>
  existsSync(shell.split(' ')[0]!),
)

/** Commands that a line of the script may name when it is cut off, and those that it runs. */
const COMMANDS = [
  'main',
  'usage',
  'say',
  'die',
  'need',
  'locations',
  'targets',
  'fetch',
  'sha256',
  'remove',
  'install_shared',
  'remove_shared',
  'cat',
  'chmod',
  'chown',
  'cp',
  'curl',
  'cut',
  'getconf',
  'grep',
  'gzip',
  'head',
  'id',
  'ldd',
  'ln',
  'mkdir',
  'mktemp',
  'mv',
  'openssl',
  'rm',
  'sed',
  'sha256sum',
  'shasum',
  'sysctl',
  'systemctl',
  'tar',
  'tr',
  'uname',
  'useradd',
  'wget',
]

test.each(SHELLS)(
  'a script that is cut off at any point runs nothing in %s',
  { tags: ['slow'] },
  (shell) => {
    release()
    const whole = readFileSync(join(work, 'install.sh'), 'utf8')
    const [stubs, prefixes] = [join(work, 'stubs'), join(work, 'prefixes')]
    for (const folder of [stubs, prefixes]) mkdirSync(folder)
    for (const name of COMMANDS) {
      const stub = `#!/bin/sh\necho "$0" >>"${work}/ran"\n`
      writeFileSync(join(stubs, name), stub, { mode: 0o755 })
    }
    // The script is complete if it lacks only its final line feed.
    const last = whole.trimEnd().length - 1
    for (let length = last; length > 0; length -= length > last - 2048 ? STRIDE : 97) {
      writeFileSync(join(prefixes, String(length)), whole.slice(0, length))
    }
    const each = `for prefix in ${prefixes}/*; do ${shell} "$prefix" </dev/null; done`
    const environment = { PATH: stubs, HOME: join(work, 'home'), TMPDIR: work }
    const { stdout } = spawnSync('/bin/sh', ['-c', each], { encoding: 'utf8', env: environment })
    expect(stdout).toBe('')
    expect(readdirSync(work).sort()).toEqual(['install.sh', 'mirror', 'prefixes', 'stubs'])
  },
)

test.each(SHELLS)('the complete script installs in %s without a final line feed', (shell) => {
  release()
  const whole = readFileSync(join(work, 'install.sh'), 'utf8')
  writeFileSync(join(work, 'install.sh'), whole.trimEnd())
  expect(install([], {}, shell).stdout).toContain('Installed')
})

test.each(['000', '077'])('other users can run what is installed under umask %s', (umask) => {
  release()
  const result = install([], {}, `umask ${umask}; /bin/sh`)
  expect(result.status).toBe(0)
  for (const path of ['bin', 'bin/.svc-install', 'bin/.svc-install/files', 'bin/svc']) {
    expect([path, statSync(join(work, path)).mode & 0o777]).toEqual([path, 0o755])
  }
  for (const path of ['bin/.svc-install/receipt', 'bin/.svc-install/files/LICENSE']) {
    expect([path, statSync(join(work, path)).mode & 0o777]).toEqual([path, 0o644])
  }
})

test('an installation can be removed', () => {
  release()
  install()
  writeFileSync(join(work, 'bin/other'), '')
  writeFileSync(join(work, 'bin/svc-server.previous'), 'text')
  expect(install(['--uninstall']).status).toBe(0)
  expect(readdirSync(join(work, 'bin'))).toEqual(['other'])
})

/** An installation as an ordinary user has it, whose id is the one of this test. */
function asUser(): Record<string, string> {
  mkdirSync(join(work, 'fake'))
  writeFileSync(join(work, 'fake/id'), '#!/bin/sh\necho 1000\n', { mode: 0o755 })
  return {
    PATH: `${join(work, 'fake')}:/usr/bin:/bin:/usr/sbin:/sbin`,
    SVC_INSTALL_DIR: '',
    XDG_DATA_HOME: join(work, 'data home'),
  }
}

function sharedFiles(root: string): string[] {
  if (!existsSync(root)) return []
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => !name.startsWith('svc/') && statSync(join(root, name)).isFile())
}

test('manual pages and completions go to the directories of the user, and are removed', () => {
  release()
  const user = asUser()
  const data = user.XDG_DATA_HOME!
  expect(install([], user)).toMatchObject({ status: 0, stderr: '' })
  expect(sharedFiles(data).sort()).toEqual(SHARED)
  const page = join(data, 'man/man1/svc.1')
  expect(readFileSync(page, 'utf8')).toBe('text of man/man1/svc.1\n')
  expect(statSync(page).mode & 0o777).toBe(0o644)
  expect(install([], user).status).toBe(0)
  expect(sharedFiles(data).sort()).toEqual(SHARED)
  expect(install(['--uninstall', '--dry-run'], user).stdout).toContain(`Would remove ${page}.`)
  expect(sharedFiles(data).sort()).toEqual(SHARED)
  expect(install(['--uninstall'], user).status).toBe(0)
  expect(sharedFiles(data)).toEqual([])
})

test('a file that the installer did not put there is neither replaced nor removed', () => {
  release()
  const user = asUser()
  const completions = join(user.XDG_DATA_HOME!, 'bash-completion/completions')
  mkdirSync(completions, { recursive: true })
  writeFileSync(join(completions, 'svc'), 'my own')
  symlinkSync(join(work, 'elsewhere'), join(completions, 'svc-server'))
  expect(install([], user).stdout).toContain(`Left ${join(completions, 'svc')} as it is`)
  const page = join(user.XDG_DATA_HOME!, 'man/man8/svc-server.8')
  writeFileSync(page, 'changed')
  expect(install(['--uninstall'], user).status).toBe(0)
  expect(readFileSync(join(completions, 'svc'), 'utf8')).toBe('my own')
  expect(readFileSync(page, 'utf8')).toBe('changed')
  expect(existsSync(join(work, 'elsewhere'))).toBe(false)
})

test('manual pages and completions can be left out', () => {
  release()
  const user = asUser()
  expect(install(['--no-completions'], user).status).toBe(0)
  expect(sharedFiles(user.XDG_DATA_HOME!)).toEqual([])
})

test('a service has manual pages and completions in the directories of the system', () => {
  release()
  const root = join(work, 'root')
  expect(install(['--service'], { DESTDIR: root }).stderr).toBe('')
  expect(sharedFiles(join(root, 'usr/local/share')).sort()).toEqual(SHARED)
})

test('a user who cannot have the service installs nothing', () => {
  release()
  mkdirSync(join(work, 'fake'))
  const id = join(work, 'fake/id')
  writeFileSync(id, '#!/bin/sh\necho 1000\n', { mode: 0o755 })
  const path = `${join(work, 'fake')}:/usr/bin:/bin:/usr/sbin:/sbin`
  const result = install(['--service'], { PATH: path })
  expect([result.status, result.stdout]).toEqual([1, ''])
  expect(result.stderr).toBe('install.sh: --service needs root.\n')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test('a service gets its unit, its settings and one pepper, each only once', () => {
  release()
  const root = join(work, 'root')
  expect(install(['--service'], { DESTDIR: root }).stderr).toBe('')
  const pepper = readFileSync(join(root, 'etc/svc/platform-identity-pepper'), 'utf8')
  expect(Buffer.from(pepper, 'base64url').length).toBe(32)
  expect(pepper).toMatch(/^[A-Za-z0-9_-]{43}$/)
  expect(statSync(join(root, 'etc/svc/platform-identity-pepper')).mode & 0o077).toBe(0)
  const unit = readFileSync(join(root, 'etc/systemd/system/svc-server.service'), 'utf8')
  expect(unit).toContain(`ExecStart=${join(work, 'bin')}/svc-server serve`)
  install(['--service'], { DESTDIR: root })
  expect(readFileSync(join(root, 'etc/svc/platform-identity-pepper'), 'utf8')).toBe(pepper)
})

test('the installer template does not install', () => {
  writeFileSync(join(work, 'install.sh'), readFileSync(join(ROOT, 'install.sh')))
  expect(install().stderr).toContain('source of the installer')
})

test('the receipt names an https mirror', () => {
  release()
  const PATH = `${work}:/usr/bin:/bin:/usr/sbin:/sbin`
  const curl = `#!/bin/sh\ncp "${work}/mirror/\${9##*/}" "$8"\n`
  writeFileSync(join(work, 'curl'), curl, { mode: 0o755 })
  const base = 'https://mirror.test/svc'
  expect(install([], { PATH, SVC_BASE_URL: base }).stderr).toBe('')
  expect(readFileSync(join(work, 'bin/.svc-install/receipt'), 'utf8')).toContain(`\nbase ${base}\n`)
})
