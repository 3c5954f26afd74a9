/**
 * Goal: the installer verifies what it downloads before it unpacks, and replaces nothing if it
 * cannot. Method: each case installs a version, then runs the installer of a release with a fault.
 */
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, type TestContext, test } from 'vitest'
import {
  ARTEFACT,
  installerEnvironment,
  type ReleaseOptions,
  releaseKeys,
  runInstaller,
  writeRelease,
} from './installer-fixture.ts'
import { minisignPublicFile } from './minisign.ts'

const MINISIGN = '/usr/bin/minisign'
const REQUIRED = { SVC_REQUIRE_SIGNATURE: '1' }

let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-origin-'))
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

const mirror = (name: string) => join(work, 'mirror', name)
const install = (args: readonly string[] = [], environment: Record<string, string> = {}) =>
  runInstaller(work, args, environment)

/** Returns an environment whose PATH has the programs of the installer and one verifier or none. */
function withVerifiers(...verifiers: readonly string[]): Record<string, string> {
  const tools = join(work, 'tools')
  mkdirSync(tools)
  const needed = 'uname mktemp tar gzip mv cp rm mkdir chmod ln grep cut id tr cat ldd sha256sum sh'
  for (const tool of [...needed.split(' '), ...verifiers]) {
    const found = spawnSync('/bin/sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' })
    if (found.status === 0) symlinkSync(found.stdout.trim(), join(tools, tool))
  }
  return { PATH: tools }
}

function needMinisign({ skip }: TestContext): void {
  if (!existsSync(MINISIGN)) skip(`${MINISIGN} is missing: install minisign`)
}

/** Installs a version that every fault must leave as it is, and returns a function that checks. */
function installed(version = '9.9.8'): () => void {
  const script = `echo "svc-server ${version} 9.9.9"`
  writeRelease(work, { script })
  expect(install()).toMatchObject({ status: 0, stderr: '' })
  const names = ['bin/svc', 'bin/svc-server', 'bin/.svc-install/receipt']
  const read = () => names.map((name) => readFileSync(join(work, name), 'utf8'))
  const before = read()
  expect(before[0]).toContain(version)
  return () => {
    expect(read()).toEqual(before)
    expect(readdirSync(join(work, 'bin')).sort()).toEqual(['.svc-install', 'svc', 'svc-server'])
    expect(readdirSync(work).filter((name) => name.startsWith('tmp'))).toEqual([])
  }
}

function release(options: ReleaseOptions = {}): void {
  writeRelease(work, { signed: true, ...options })
}

/** Changes one byte in the middle of a file. */
function changeByte(path: string): void {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(path, bytes)
}

test.for(['minisign', 'openssl'])(
  'a signature is verified with %s before anything is unpacked',
  { tags: ['slow'] },
  (verifier, context) => {
    if (verifier === 'minisign') needMinisign(context)
    release()
    const result = install([], { ...REQUIRED, ...withVerifiers(verifier) })
    expect(result).toMatchObject({ status: 0, stderr: '' })
    expect(result.stdout).toContain(`Verified the signature of SHA256SUMS with ${verifier}.`)
  },
)

test('minisign verifies where both programs are installed', (context) => {
  needMinisign(context)
  release()
  expect(install().stdout).toContain('with minisign.')
})

test.for([
  ['minisign', 'SHA256SUMS'],
  ['minisign', 'SHA256SUMS.minisig'],
  ['openssl', 'SHA256SUMS'],
  ['openssl', 'SHA256SUMS.sig'],
  ['minisign', ARTEFACT],
  ['openssl', ARTEFACT],
])(
  '%s rejects a changed byte of %s and replaces nothing',
  { tags: ['slow'] },
  ([tool, name], context) => {
    if (tool === 'minisign') needMinisign(context)
    const isUnchanged = installed()
    release()
    changeByte(mirror(name!))
    const result = install([], withVerifiers(tool!))
    expect([result.status, result.stderr]).toEqual([
      1,
      expect.stringMatching(/(signature of SHA256SUMS is wrong|has sha256).*Nothing was installed/),
    ])
    isUnchanged()
  },
)

test.for([
  ['minisign', 'SHA256SUMS.minisig'],
  ['openssl', 'SHA256SUMS.sig'],
])(
  '%s rejects a missing signature and replaces nothing',
  { tags: ['slow'] },
  ([tool, name], context) => {
    if (tool === 'minisign') needMinisign(context)
    const isUnchanged = installed()
    release()
    rmSync(mirror(name!))
    const result = install([], withVerifiers(tool!))
    expect(result.status).toBe(1)
    expect(result.stderr).toContain(`${name} cannot be read. Nothing was installed.`)
    isUnchanged()
  },
)

test('a required signature is missing where no program can verify it', () => {
  const isUnchanged = installed()
  release()
  const tools = withVerifiers()
  const result = install([], { ...REQUIRED, ...tools })
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('No signature can be verified')
  isUnchanged()
  // The digests in the installer suffice where no signature is required.
  expect(install([], tools).status).toBe(0)
})

test('a required signature is missing in a release without keys', () => {
  const isUnchanged = installed()
  writeRelease(work)
  const result = install([], REQUIRED)
  expect([result.status, result.stdout]).toEqual([1, expect.not.stringContaining('Verified')])
  expect(result.stderr).toContain('Nothing was installed.')
  isUnchanged()
})

test.for(['minisign', 'openssl'])(
  'the signature of another key is rejected by %s and replaces nothing',
  { tags: ['slow'] },
  (tool, context) => {
    if (tool === 'minisign') needMinisign(context)
    const isUnchanged = installed()
    release()
    const installer = readFileSync(join(work, 'install.sh'))
    // The same artefact, signed by someone else.
    release()
    writeFileSync(join(work, 'install.sh'), installer)
    const result = install([], withVerifiers(tool))
    expect(result.status).toBe(1)
    expect(result.stderr).toContain('The signature of SHA256SUMS is wrong.')
    isUnchanged()
  },
)

test('a key of the user replaces those in the installer, in both formats', {
  tags: ['slow'],
}, (context) => {
  needMinisign(context)
  const isUnchanged = installed()
  const keys = releaseKeys()
  release({ keys })
  const other = releaseKeys()
  const path = join(work, 'pinned')
  for (const text of [`${other.pem}\n`, minisignPublicFile(other.minisign)]) {
    writeFileSync(path, text)
    const result = install([], { SVC_PUBLIC_KEY_FILE: path })
    expect([result.status, result.stderr]).toEqual([1, expect.stringContaining('is wrong')])
    isUnchanged()
  }
  for (const [text, tool] of [
    [`${keys.pem}\n`, 'openssl'],
    [minisignPublicFile(keys.minisign), 'minisign'],
  ] as const) {
    writeFileSync(path, text)
    rmSync(join(work, 'bin'), { recursive: true })
    expect(install([], { SVC_PUBLIC_KEY_FILE: path }).stdout).toContain(`with ${tool}.`)
  }
})

test('a key of the user is never ignored', () => {
  const isUnchanged = installed()
  release()
  const path = join(work, 'pinned')
  const missing = install([], { SVC_PUBLIC_KEY_FILE: path })
  expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('cannot be read')])
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(path, publicKey.export({ type: 'spki', format: 'pem' }))
  const result = install([], { SVC_PUBLIC_KEY_FILE: path, ...withVerifiers() })
  expect([result.status, result.stderr]).toEqual([1, expect.stringContaining('openssl is needed')])
  isUnchanged()
})

test('a signed list without the artefact is rejected and replaces nothing', () => {
  const isUnchanged = installed()
  const keys = releaseKeys()
  release({ keys, script: 'echo "svc-server 9.9.9 other"' })
  const signed = readdirSync(join(work, 'mirror')).filter((name) => name.startsWith('SHA256SUMS'))
  const lists = signed.map((name) => [name, readFileSync(mirror(name))] as const)
  release({ keys })
  for (const [name, bytes] of lists) writeFileSync(mirror(name), bytes)
  const result = install()
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('does not list this')
  isUnchanged()
})

test.each(['9.9.10', '9.10.0', '10.0.0', '9.9.10+3614d4d9'])(
  'the older version 9.9.9 does not replace %s unless that is allowed',
  { tags: ['slow'] },
  (version) => {
    const isUnchanged = installed(version)
    release()
    for (const args of [[], ['--dry-run']]) {
      const result = install(args)
      expect(result.status).toBe(1)
      expect(result.stderr).toContain(
        `svc ${version.split('+')[0]} in ${join(work, 'bin')} is newer`,
      )
      expect(result.stderr).toContain('--allow-downgrade')
      isUnchanged()
    }
    const result = install(['--allow-downgrade'])
    expect(result).toMatchObject({ status: 0, stderr: '' })
    expect(result.stdout).toContain('by the older 9.9.9')
    expect(readFileSync(join(work, 'bin/svc'), 'utf8')).toContain('echo "svc-server 9.9.9"')
  },
)

test.each(['9.9.9', '9.9.8', '9.8.10', '8.10.10', '0.5.0+3614d4d9'])(
  'version 9.9.9 replaces %s',
  { tags: ['slow'] },
  (version) => {
    installed(version)
    release()
    expect(install()).toMatchObject({ status: 0, stderr: '' })
  },
)

test('the receipt has the version of an executable that does not run', () => {
  installed('9.9.10')
  writeFileSync(join(work, 'bin/svc'), '#!/bin/sh\nexit 1\n')
  const receipt = join(work, 'bin/.svc-install/receipt')
  writeFileSync(receipt, readFileSync(receipt, 'utf8').replace('9.9.9', '9.9.10'))
  release()
  expect(install().stderr).toContain('svc 9.9.10')
})

test('another program of the name svc is no newer version', () => {
  mkdirSync(join(work, 'bin'))
  writeFileSync(join(work, 'bin/svc'), '#!/bin/sh\necho "supervise 99.1.1"\n', { mode: 0o755 })
  release()
  expect(install()).toMatchObject({ status: 0, stderr: '' })
})

test.each([0, 1, 511])(
  'an archive cut off after %i bytes replaces nothing',
  { tags: ['slow'] },
  (length) => {
    const isUnchanged = installed()
    release()
    writeFileSync(mirror(ARTEFACT), readFileSync(mirror(ARTEFACT)).subarray(0, length))
    const result = install()
    expect([result.status, result.stderr]).toEqual([1, expect.stringContaining('has sha256')])
    isUnchanged()
  },
)

/** Runs the installer without blocking the server of this process. */
async function installFrom(url: string) {
  const env = { ...installerEnvironment(work), SVC_BASE_URL: url }
  const child = spawn('/bin/sh', [join(work, 'install.sh')], { env })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const status = await new Promise((resolve) => child.once('close', resolve))
  return { status, stderr }
}

test('a download whose connection ends early replaces nothing', { timeout: 120_000 }, async ({
  skip,
}) => {
  if (!existsSync('/usr/bin/curl')) skip('curl is missing')
  const isUnchanged = installed()
  release()
  const whole = readFileSync(mirror(ARTEFACT))
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const head = `HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n`
      socket.end(Buffer.concat([Buffer.from(head), whole.subarray(0, whole.length >> 1)]))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const result = await installFrom(`http://127.0.0.1:${port}`)
  expect([result.status, result.stderr]).toEqual([
    1,
    expect.stringContaining('failed. Nothing was installed.'),
  ])
  isUnchanged()
})

test('a signed release installs over HTTP', { timeout: 120_000 }, async ({ skip }) => {
  if (!existsSync('/usr/bin/curl')) skip('curl is missing')
  release()
  const server = createServer((request, response) => {
    response.end(readFileSync(mirror(request.url!.slice(1))))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  expect(await installFrom(`http://127.0.0.1:${port}`)).toEqual({ status: 0, stderr: '' })
})
