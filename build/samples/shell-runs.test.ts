/**
 * Shell samples of the documents, run as they are written in a folder that stands for a machine:
 * its absolute paths lie below that folder. Programs that a test cannot run, such as systemctl, are
 * scripts that note how they were called.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT } from '../bundle.ts'
import { readSamples } from './blocks.ts'
import { ACCEPT_LOSS, COPY, RENEWAL, RESTORE_COPY, SECRETS, SHOW_TOKEN } from './shell-runs.ts'

const TEXTS = new Map(readSamples(ROOT).map(({ place, text }) => [place, text]))
/** An absolute path, at the beginning of a word or of a value. */
const ABSOLUTE = /(?<=^|[\s"'=(])\/(?=[a-z])/gm
/** The folders that samples name. Another one would be the folder of the machine of the test. */
const FOLDERS = /^(?:var|etc|run|usr\/local|path)(?=\/|\s|$)/

let machine: string

beforeEach(() => {
  machine = mkdtempSync(join(tmpdir(), 'svc-machine-'))
  for (const folder of ['bin', 'home']) mkdirSync(join(machine, folder))
})
afterEach(() => rmSync(machine, { recursive: true, force: true }))

const at = (path: string): string => join(machine, path)
const read = (path: string): string => readFileSync(at(path), 'utf8')
const modeOf = (path: string): number => statSync(at(path)).mode & 0o777

function write(path: string, text: string): void {
  mkdirSync(dirname(at(path)), { recursive: true })
  writeFileSync(at(path), text)
}

/** Installs a program that notes its arguments, then does what `body` says. */
function program(name: string, body = ''): void {
  write(`bin/${name}`, `#!/bin/sh\necho "${name} $*" >> '${at('called')}'\n${body}\n`)
  chmodSync(at(`bin/${name}`), 0o755)
}

const called = (): string[] => (existsSync(at('called')) ? read('called').trim().split('\n') : [])

/** Runs a sample in the home of the machine and returns its output. */
function run(
  place: string,
  environment: Readonly<Record<string, string>> = {},
  statuses: readonly number[] = [0],
): string {
  const script = TEXTS.get(place)!.replace(ABSOLUTE, (_, index: number, whole: string) => {
    if (whole.startsWith('/dev/', index)) return '/'
    expect(whole.slice(index + 1)).toMatch(FOLDERS)
    return `${machine}/`
  })
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-eu', '-c', script], {
    cwd: at('home'),
    encoding: 'utf8',
    env: { PATH: `${at('bin')}:${process.env.PATH}`, ...environment },
  })
  expect([place, status, stderr]).toEqual([place, expect.toBeOneOf([...statuses]), ''])
  return stdout
}

test('a copy of a stopped server is what the restore of a copy brings back', () => {
  program('systemctl')
  program(
    'pg_dump',
    'for each; do case $each in --file=*) echo rows > "$(echo "$each" | cut -c 8-)";; esac; done',
  )
  program('pg_restore')
  const files = {
    'etc/svc/identity-database-url': 'postgres://svc@db.example.com/svc\n',
    'etc/svc/pepper': 'pepper\n',
    'var/lib/svc/product/service.json': '{}\n',
    'var/lib/svc/product/artifacts/a': 'artifact\n',
    'var/lib/svc/state/lock': '',
  }
  for (const [path, text] of Object.entries(files)) write(path, text)
  mkdirSync(at('var/backups'))
  run(COPY)
  expect(modeOf('var/backups/svc')).toBe(0o700)
  for (const name of ['identity.dump', 'product.tar.gz', 'settings.tar.gz']) {
    expect([name, modeOf(`var/backups/svc/${name}`)]).toEqual([name, 0o600])
  }
  const url = 'postgres://svc@db.example.com/svc'
  expect(called()).toEqual([
    'systemctl stop svc-server',
    `pg_dump --format=custom --file=identity.dump ${url}`,
    'systemctl start svc-server',
  ])
  write('var/lib/svc/product/service.json', 'damaged')
  write('var/lib/svc/product/later', 'not in the copy')
  rmSync(at('etc/svc'), { recursive: true })
  rmSync(at('called'))
  // The reader is in the folder of the copy.
  rmSync(at('home'), { recursive: true })
  spawnSync('cp', ['-r', at('var/backups/svc'), at('home')])
  run(RESTORE_COPY)
  for (const [path, text] of Object.entries(files)) expect([path, read(path)]).toEqual([path, text])
  expect(existsSync(at('var/lib/svc/product/later'))).toBe(false)
  expect(called()).toEqual([
    'systemctl stop svc-server',
    `pg_restore --clean --if-exists --dbname=${url} identity.dump`,
    'systemctl start svc-server',
  ])
})

test('the loss of commits is accepted by a unit that exists for one start', () => {
  const unit = 'run/systemd/system/svc-server.service.d/accept-loss.conf'
  program('systemctl', `test "$1" != restart || cp '${at(unit)}' '${at('during')}'`)
  run(ACCEPT_LOSS)
  const line = `ExecStart=${at('usr/local')}/bin/svc-server serve --accept-loss 120`
  expect(read('during')).toBe(`[Service]\nExecStart=\n${line}\n`)
  expect(existsSync(at(unit))).toBe(false)
  expect(called()).toEqual([
    'systemctl daemon-reload',
    'systemctl restart svc-server',
    'systemctl daemon-reload',
  ])
})

test('the claims of a token are shown', () => {
  const claims = { sub: 'repo:acme/app', note: 'a?b>c~ü' }
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
  // base64 complains of an encoding without padding, after it has decoded it.
  const token = { SVC_OIDC_TOKEN: `header.${payload}.signature` }
  expect(JSON.parse(run(SHOW_TOKEN, token, [0, 1]))).toEqual(claims)
})

test('the secrets of docker compose are made, and only their user may read them', () => {
  program('sudo')
  program('svc')
  for (const name of ['fullchain', 'privkey']) write(`path/to/${name}.pem`, `${name}\n`)
  run(SECRETS)
  const password = read('home/secrets/database-password')
  expect(password).toMatch(/^[0-9a-f]{48}$/)
  expect(read('home/secrets/identity-pepper')).toMatch(/^[\w-]{43}$/)
  expect(read('home/secrets/identity-database-url')).toBe(
    `postgres://svc:${password}@postgres:5432/svc`,
  )
  for (const name of ['identity-pepper', 'identity-database-url', 'database-password']) {
    expect([name, modeOf(`home/secrets/${name}`)]).toEqual([name, 0o400])
  }
  expect([modeOf('home/tls'), modeOf('home/tls/privkey.pem')]).toEqual([0o700, 0o400])
  expect(called()).toEqual([
    'sudo chown -R 65532:65532 secrets tls backups',
    'svc backup keygen --out backup.key',
  ])
})

test('a renewed certificate is installed for the server alone', () => {
  // The test has no user svc: the program of the system gets the other arguments.
  program('install', 'exec /usr/bin/install $(echo "$*" | sed "s/-o svc -g svc//")')
  write('live/privkey.pem', 'key\n')
  write('live/fullchain.pem', 'chain\n')
  run(RENEWAL, { RENEWED_LINEAGE: at('live') })
  expect(read('etc/svc/tls/privkey.pem')).toBe('key\n')
  expect([modeOf('etc/svc/tls'), modeOf('etc/svc/tls/privkey.pem')]).toEqual([0o700, 0o600])
  expect(called()[0]).toMatch(/^install -d -o svc -g svc -m 700 /)
})
