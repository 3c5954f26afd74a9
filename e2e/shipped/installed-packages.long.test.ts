/**
 * Goal: package managers install, upgrade and remove the packages, and keep data. Method: apt of a
 * minimal Debian 13 installs from the repository that a release has, signed by a key of this run,
 * and rpm installs into a root of its own. A short script stands for the executable wherever only
 * files count; the executable under test is installed once, and serves a call.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { aptRepository, sourcesText, writeRepository } from '../../build/packages/apt-repository.ts'
import type { Format } from '../../build/packages/files.ts'
import { detachedSignature, publicKey } from '../../build/packages/gpg.ts'
import { buildPackage, GLIBC_MIN, packageName } from '../../build/packages/nfpm.ts'
import { signatureOf, signedPart, withSignature } from '../../build/packages/rpm-signature.ts'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { argv } from '../argv.ts'
import { SERVER } from '../harness.ts'

const DEADLINE_MS = 1_200_000
const TARGET = process.arch === 'x64' ? 'linux-x64' : 'linux-arm64'
const TIME = 1_700_000_000
const MAINTAINER = 'svc <svc@example.com>'
/** A minimal system, which is made once and copied for each test. */
const TEMPLATE = join(tmpdir(), 'roots/packages-trixie')
const PEPPER = '/etc/svc/platform-identity-pepper'

/** The reason why packages cannot be installed here; null if they can. */
function missing(...tools: readonly string[]): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'root of Linux is needed'
  const absent = tools.filter((name) => spawnSync('which', [name]).status !== 0)
  return absent.length === 0 ? null : `${absent.join(' and ')} not installed`
}

function run(command: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const [file = '', ...args] = command
  const env = { PATH: process.env.PATH, HOME: work, LC_ALL: 'C', ...environment }
  const options = { encoding: 'utf8', env, maxBuffer: 64 << 20, timeout: DEADLINE_MS } as const
  return spawnSync(file, args, options)
}

function succeed(command: readonly string[], environment?: Readonly<Record<string, string>>) {
  const { status, stdout, stderr } = run(command, environment)
  expect(status, `${command.join(' ')}\n${stdout}${stderr}`).toBe(0)
  return stdout
}

let work = ''
let signingKey = ''
let program = ''

const noRoot = missing('nfpm', 'debootstrap', 'gpg', 'unshare')

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-installed-'))
  if (noRoot !== null) return
  if (!existsSync(join(TEMPLATE, 'usr/bin/apt-get'))) {
    rmSync(TEMPLATE, { recursive: true, force: true })
    const mirror = 'http://deb.debian.org/debian'
    succeed(argv`debootstrap --variant=minbase trixie ${TEMPLATE} ${mirror}`)
  }
  process.env.GNUPGHOME = join(work, 'gnupg')
  mkdirSync(process.env.GNUPGHOME, { mode: 0o700 })
  const identity = 'svc <svc@example.com>'
  const gpg = ['gpg', '--batch', '--passphrase', '']
  succeed([...gpg, '--quick-gen-key', identity, 'ed25519', 'sign', 'never'], {
    GNUPGHOME: process.env.GNUPGHOME,
  })
  const listed = succeed(argv`gpg --batch --with-colons --list-keys`, {
    GNUPGHOME: process.env.GNUPGHOME,
  })
  signingKey = /^fpr:+([0-9A-F]{40}):/m.exec(listed)![1]!
  program = join(work, 'program')
  writeFileSync(program, '#!/bin/sh\necho "$0 with $*"\n', { mode: 0o755 })
}, DEADLINE_MS)

afterAll(() => {
  if (process.env.GNUPGHOME !== undefined) run(argv`gpgconf --kill all`)
  delete process.env.GNUPGHOME
  rmSync(work, { recursive: true })
})

/** Writes an RPM, signed by the key of this run, and returns its path. */
function packedRpm(version: string, executable = program): string {
  const path = join(work, packageName(TARGET, 'rpm', version))
  const built = build('rpm', version, executable)
  writeFileSync(path, withSignature(built, detachedSignature(signingKey, signedPart(built))))
  return path
}

function build(format: Format, version: string, executable = program): Buffer {
  const source = { executable, licences: 'MIT', version, time: TIME, maintainer: MAINTAINER }
  return buildPackage(TARGET, format, source)
}

interface Machine {
  readonly root: string
  /** Returns the command that runs another one inside. */
  inside(command: readonly string[], user?: string): string[]
  /** Runs a command inside, which must succeed, and returns its output. */
  sh(command: string): string
  exists(path: string): boolean
  read(path: string): string
  /** Puts a version into the repository of the machine, and asks apt to install it. */
  install(version: string, executable?: string): string
}

function machine(): Machine {
  const root = mkdtempSync(join(work, 'root-'))
  succeed(['cp', '-a', `${TEMPLATE}/.`, root])
  onTestFinished(() => rmSync(root, { recursive: true }))
  const inside = (command: readonly string[], user = 'root') => [
    ...argv`unshare --mount --pid --fork --kill-child --mount-proc=${root}/proc`,
    ...argv`chroot --userspec=${user} ${root} ${command}`,
  ]
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  const environment = { PATH: path, HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' }
  const sh = (command: string) => succeed(inside(['sh', '-ec', `${command} 2>&1`]), environment)
  const read = (name: string) => readFileSync(join(root, name), 'utf8')
  const install = (version: string, executable?: string) => {
    const folder = join(root, 'srv/apt')
    rmSync(folder, { recursive: true, force: true })
    const name = packageName(TARGET, 'deb', version)
    const bytes = build('deb', version, executable)
    writeRepository(folder, aptRepository([{ name, bytes }], TIME), signingKey)
    cpSync(join(folder, 'svc.asc'), join(root, 'etc/apt/keyrings/svc.asc'))
    writeFileSync(join(root, 'etc/apt/svc.sources'), sourcesText('file:///srv/apt'))
    const only = '-o Dir::Etc::sourcelist=/etc/apt/svc.sources -o Dir::Etc::sourceparts=-'
    sh(`apt-get ${only} update`)
    return sh(`apt-get ${only} install -y svc`)
  }
  return { root, inside, sh, read, install, exists: (name) => existsSync(join(root, name)) }
}

/** Lets the machine have a running server, and records what scripts ask systemd for. */
function superviseServer({ root }: Machine, checkStatus: number): void {
  mkdirSync(join(root, 'run/systemd/system'), { recursive: true })
  const tool = (name: string, text: string) =>
    writeFileSync(
      join(root, 'usr/sbin', name),
      `#!/bin/sh\necho "${name} $*" >>/tmp/calls\n${text}\n`,
      { mode: 0o755 },
    )
  tool('systemctl', 'exit 0')
  tool('systemd-run', `exit ${checkStatus}`)
  writeFileSync(join(root, 'tmp/calls'), '')
}

describe.skipIf(noRoot !== null)(`packages are installed (${noRoot ?? 'on Debian 13'})`, () => {
  test('the same sources give the same packages', () => {
    for (const format of ['deb', 'rpm'] as const) {
      expect(build(format, '1.0.0').equals(build(format, '1.0.0')), format).toBe(true)
      expect(build(format, '1.0.0').equals(build(format, '1.0.1')), format).toBe(false)
    }
  })

  test('packages for arm64 say so', () => {
    const source = { executable: program, licences: 'MIT', version: '1.0.0', time: TIME }
    for (const format of ['deb', 'rpm'] as const) {
      const path = join(work, packageName('linux-arm64', format, '1.0.0'))
      writeFileSync(
        path,
        buildPackage('linux-arm64', format, { ...source, maintainer: MAINTAINER }),
      )
      expect(readFileSync(path).includes(format === 'deb' ? 'debian-binary' : 'aarch64')).toBe(true)
      if (format === 'deb') expect(succeed(argv`dpkg-deb -f ${path} Architecture`)).toBe('arm64\n')
    }
  })

  test(
    'apt installs from the signed repository, with owners and modes, and starts nothing',
    () => {
      const host = machine()
      superviseServer(host, 0)
      const said = host.install('1.0.0')
      expect(said).toContain('svc: The service is neither enabled nor started.')
      expect(host.sh('stat -c "%U:%G %a %n" /etc/svc /etc/svc/* /var/lib/svc /var/lib/svc/*')).toBe(
        [
          'root:svc 750 /etc/svc',
          'root:svc 640 /etc/svc/environment',
          `root:svc 640 ${PEPPER}`,
          'svc:svc 700 /var/lib/svc',
          'svc:svc 700 /var/lib/svc/state\n',
        ].join('\n'),
      )
      expect(host.read(PEPPER)).toMatch(/^[\w-]{43}$/)
      expect(host.sh('svc --version; svc-server version')).toBe(
        '/usr/bin/svc with --version\n/usr/bin/svc-server with version\n',
      )
      expect(host.sh('getent passwd svc')).toMatch(/:\/var\/lib\/svc:\/usr\/sbin\/nologin$/m)
      expect(host.read('usr/share/svc/installed-by')).toBe('deb\n')
      expect(host.read('tmp/calls')).not.toMatch(/enable|start/)
      expect(host.sh('dpkg --verify svc')).toBe('')
    },
    DEADLINE_MS,
  )

  test(
    'apt rejects a repository that was changed after it was signed',
    () => {
      const host = machine()
      host.install('1.0.0')
      const release = 'srv/apt/dists/stable/InRelease'
      const text = host.read(release)
      expect(text).toContain('Label: svc')
      writeFileSync(join(host.root, release), text.replace('Label: svc', 'Label: other'))
      const only = '-o Dir::Etc::sourcelist=/etc/apt/svc.sources -o Dir::Etc::sourceparts=-'
      const said = host.sh(`apt-get ${only} -o Acquire::Check-Date=false update || true`)
      expect(said).toMatch(/signature|BADSIG|not signed/i)
    },
    DEADLINE_MS,
  )

  test.each([
    [0, true, /^(?!.*still runs)/s],
    [4, false, /no way back from this upgrade but a backup/],
    [78, false, /upgrade --check ended with 78/],
  ])(
    'an upgrade whose check ends with %i restarts a running server: %s',
    (status, restarts, message) => {
      const host = machine()
      host.install('1.0.0')
      const pepper = host.read(PEPPER)
      const settings = `${host.read('etc/svc/environment')}SERVICE_RUNNER_SANDBOX=required\n`
      writeFileSync(join(host.root, 'etc/svc/environment'), settings)
      superviseServer(host, status)
      expect(host.install('1.1.0-rc.1')).toMatch(message)
      expect(host.sh('dpkg-query -W svc')).toBe('svc\t1.1.0~rc.1\n')
      const calls = host.read('tmp/calls')
      expect(calls).toContain('/usr/bin/svc-server upgrade --check')
      expect(/^systemctl .*\brestart svc-server\.service$/m.test(calls)).toBe(restarts)
      expect(host.read('etc/svc/environment')).toBe(settings)
      expect(host.read(PEPPER)).toBe(pepper)
      host.install('1.1.0')
      expect(host.sh('dpkg-query -W svc')).toBe('svc\t1.1.0\n')
    },
    DEADLINE_MS,
  )

  test(
    'a removal stops the server, and a purge keeps data, secrets and the user that owns them',
    () => {
      const host = machine()
      host.install('1.0.0')
      const data = 'var/lib/svc/state/data'
      writeFileSync(join(host.root, data), 'kept')
      const pepper = host.read(PEPPER)
      superviseServer(host, 0)
      host.sh('dpkg --remove svc')
      expect(host.read('tmp/calls')).toContain('systemctl stop svc-server.service')
      expect(host.exists('usr/bin/svc-server')).toBe(false)
      expect(host.exists('etc/svc/environment')).toBe(true)
      expect(host.sh('dpkg --purge svc')).toContain('Kept the data in /var/lib/svc')
      expect(host.exists('etc/svc/environment')).toBe(false)
      expect([host.read(data), host.read(PEPPER)]).toEqual(['kept', pepper])
      expect(host.sh(`stat -c %U:%G:%a ${PEPPER}; getent passwd svc | cut -d: -f1`)).toBe(
        'root:root:640\nsvc\n',
      )
      host.install('1.0.0')
      expect(host.read(PEPPER)).toBe(pepper)
      expect(host.sh(`stat -c %U:%G:%a ${PEPPER}`)).toBe('root:svc:640\n')
    },
    DEADLINE_MS,
  )

  test(
    'a purge without data removes the user',
    () => {
      const host = machine()
      host.install('1.0.0')
      host.sh('dpkg --purge svc')
      expect(host.exists('var/lib/svc')).toBe(false)
      expect(host.sh('getent passwd svc || echo none')).toBe('none\n')
      expect(
        host.sh('find /usr -name "*svc*" -not -path "*/python*" -newer /etc/apt/svc.sources'),
      ).toBe('')
    },
    DEADLINE_MS,
  )
})

const noRpm = noRoot ?? missing('rpm')

test.skipIf(noRpm !== null)(
  `rpm installs, upgrades and erases the package, and keeps data (${noRpm ?? 'installed'})`,
  () => {
    const host = machine()
    const rpm = (...args: readonly string[]) =>
      succeed([
        ...argv`unshare --mount --pid --fork --mount-proc=${host.root}/proc`,
        ...argv`rpm --force-debian --root ${host.root} ${args}`,
      ])
    expect(rpm('-i', '--nodeps', packedRpm('1.0.0'))).toContain('neither enabled nor started')
    expect(host.sh('stat -c "%U:%G %a %n" /etc/svc /etc/svc/* /var/lib/svc')).toBe(
      [
        'root:svc 750 /etc/svc',
        'root:svc 640 /etc/svc/environment',
        `root:svc 640 ${PEPPER}`,
        'svc:svc 700 /var/lib/svc\n',
      ].join('\n'),
    )
    expect(host.sh('svc version')).toBe('/usr/bin/svc with version\n')
    expect(host.read('usr/share/svc/installed-by')).toBe('rpm\n')
    expect(rpm('-q', '--requires', 'svc')).toContain(`glibc >= ${GLIBC_MIN}`)
    expect(rpm('-V', '--nodeps', 'svc')).toBe('')
    const pepper = host.read(PEPPER)
    writeFileSync(join(host.root, 'etc/svc/environment'), 'A=1\n')
    writeFileSync(join(host.root, 'var/lib/svc/state/data'), 'kept')
    superviseServer(host, 0)
    rmSync(join(host.root, 'usr/bin/deb-systemd-invoke'), { force: true })
    rpm('-U', '--nodeps', packedRpm('1.1.0'))
    expect(rpm('-q', 'svc')).toMatch(/^svc-1\.1\.0-1/)
    expect(host.read('tmp/calls')).toContain('systemctl restart svc-server.service')
    expect(host.read('tmp/calls')).not.toContain('disable')
    expect(host.read('etc/svc/environment')).toBe('A=1\n')
    rpm('-e', '--nodeps', 'svc')
    expect(host.read('tmp/calls')).toContain(
      'systemctl --no-reload disable --now svc-server.service',
    )
    expect(host.exists('usr/bin/svc-server')).toBe(false)
    expect(host.read('etc/svc/environment.rpmsave')).toBe('A=1\n')
    expect([host.read('var/lib/svc/state/data'), host.read(PEPPER)]).toEqual(['kept', pepper])
  },
  DEADLINE_MS,
)

test.skipIf(noRpm !== null)(
  `rpm -K verifies the signature of an RPM, which a rebuild takes over (${noRpm ?? 'installed'})`,
  () => {
    const keys = join(work, 'rpm-keys')
    mkdirSync(keys)
    const rpm = (...args: readonly string[]) => run(argv`rpm --dbpath ${keys} ${args}`)
    const check = (name: string, bytes: Buffer) => {
      writeFileSync(join(work, name), bytes)
      const { status, stdout } = rpm('-K', join(work, name))
      return { status, said: stdout.slice(stdout.indexOf(':')) }
    }
    const signed = readFileSync(packedRpm('1.0.0'))
    expect(check('a.rpm', signed).said).toContain('SIGNATURES NOT OK')
    writeFileSync(join(work, 'svc.asc'), publicKey(signingKey))
    expect(rpm('--import', join(work, 'svc.asc')).status).toBe(0)
    expect(check('a.rpm', signed)).toMatchObject({
      status: 0,
      said: ': digests signatures OK\n',
    })
    const changed = Buffer.from(signed)
    changed[changed.length - 100]! ^= 1
    expect(check('b.rpm', changed).status).not.toBe(0)

    const unsigned = build('rpm', '1.0.0')
    expect(check('c.rpm', unsigned).said).toBe(': digests OK\n')
    const signature = signatureOf(signed)!
    expect(withSignature(unsigned, signature).equals(signed)).toBe(true)
    // The signature of one package does not hold for another one.
    const other = withSignature(build('rpm', '1.0.1'), signature)
    expect(check('d.rpm', other).said).toContain('SIGNATURES NOT OK')
  },
  DEADLINE_MS,
)

const noExecutable = noRoot ?? (existsSync(SERVER) ? null : 'run npm run build')

/** Returns the walk of README.md for a database, addresses and a directory of this run. */
async function readmeWalk(database: string): Promise<string> {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const walk = /<!-- walk -->\n```sh\n([\s\S]*?)```/.exec(readme)![1]!
  const [management, application] = [await freePort(), await freePort()]
  return [
    "trap 'kill $!; wait' EXIT; mkdir /var/lib/svc/walk; cd /var/lib/svc/walk",
    `export SERVICE_MANAGEMENT_LISTEN=127.0.0.1:${management} SVC_ALLOW_LOOPBACK_HTTP=true`,
    walk
      .replace('postgres://user:password@127.0.0.1:5432/svc', database)
      .replaceAll('127.0.0.1:3220', `127.0.0.1:${management}`)
      .replaceAll('127.0.0.1:3210', `127.0.0.1:${application}`),
  ].join('\n')
}

/** Installs the executable in a root by the manager of each format. */
const INSTALL: Readonly<Record<Format, (host: Machine) => void>> = {
  deb: (host) => void host.install('1.0.0', SERVER),
  rpm: ({ root }) => {
    const isolated = argv`unshare --mount --pid --fork --mount-proc=${root}/proc`
    const install = argv`rpm --force-debian --root ${root} -i --nodeps`
    succeed([...isolated, ...install, packedRpm('1.0.0', SERVER)])
  },
}

test.skipIf((noExecutable ?? noRpm) !== null).each(['deb', 'rpm'] as const)(
  `the first ten minutes of README.md follow an installed %s (${noExecutable ?? noRpm ?? 'built'})`,
  async (format) => {
    const host = machine()
    host.sh('apt-get update && apt-get install -y --no-install-recommends curl')
    const database = await freshDatabase()
    onTestFinished(() => database.drop(), DEADLINE_MS)
    const script = await readmeWalk(database.url)
    INSTALL[format](host)
    const begin = performance.now()
    const environment = { HOME: '/var/lib/svc', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }
    const walked = run(host.inside(['sh', '-ec', script], 'svc:svc'), environment)
    expect(walked.status, `${walked.stdout}\n${walked.stderr}`).toBe(0)
    expect(walked.stdout).toContain('"name": "general"')
    const seconds = Math.round((performance.now() - begin) / 1000)
    process.stdout.write(`From the installed ${format} to the first answered call: ${seconds} s\n`)
  },
  DEADLINE_MS,
)

describe.skipIf(noExecutable !== null)(`the executable (${noExecutable ?? 'built'})`, () => {
  test(
    'an installed executable serves a call of the user svc',
    async () => {
      const host = machine()
      const expected = succeed([SERVER, 'version'])
      host.install('1.0.0', SERVER)
      expect(host.sh('svc-server version')).toBe(expected)
      const command = (line: string) => [...host.inside(['sh', '-c', line], 'svc:svc')]
      const environment = { HOME: '/var/lib/svc', PATH: '/usr/sbin:/usr/bin' }
      const [file = '', ...args] = command('exec svc dev --root /var/lib/svc/app --port 0')
      const server = spawn(file, args, { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
      onTestFinished(() => void server.kill('SIGKILL'))
      let said = ''
      for (const stream of [server.stdout, server.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          said += text
        })
      }
      const call = (line: string) =>
        run(command(`svc call ${line} --root /var/lib/svc/app`), environment)
      const create = () => call(`channels.create '{"name":"general","author":"me"}'`)
      await expect
        .poll(() => create().status, { timeout: DEADLINE_MS, interval: 500 })
        .toBe(0)
        .catch((error) => {
          throw new Error(`${error}\n${said}${create().stderr}`)
        })
      expect(call('channels.list').stdout).toContain('general')
    },
    DEADLINE_MS,
  )

  test.skipIf(missing('objdump') !== null)(
    'the executable needs no newer symbol of glibc than the packages say',
    () => {
      const symbols = succeed(argv`objdump -T ${SERVER}`).matchAll(/GLIBC_2\.(\d+)/g)
      const newest = Math.max(...[...symbols].map(([, minor]) => Number(minor)))
      expect(`2.${newest}`).toBe(GLIBC_MIN)
    },
  )

  test.skipIf(missing('lintian') !== null)(
    'lintian has neither an error nor a warning about the package',
    () => {
      const path = join(work, packageName(TARGET, 'deb', '1.0.0'))
      writeFileSync(path, build('deb', '1.0.0', SERVER))
      const { stdout } = run(argv`lintian --tag-display-limit 0 ${path}`)
      expect(stdout).toBe('')
    },
    DEADLINE_MS,
  )
})
