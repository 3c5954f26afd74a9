/** The setup of a Mac whose programs are fakes: real processes that record their commands. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FakeMachine } from '../../../testing/setup/fake-machine.ts'
import { plist } from './launchd.ts'
import { lastingPath } from './setup.ts'

const PLAN = join(import.meta.dirname, '../../../testing/setup/plans/macos.txt')
const PLIST = '/Library/LaunchDaemons/svc-server.plist'
const DATA = '/opt/homebrew/var/postgresql@17'
const KEG = '/opt/homebrew/opt/postgresql@17'

function mac(): FakeMachine {
  const machine = new FakeMachine({ system: 'macos' })
  machine.environment = { SUDO_USER: 'alice' }
  onTestFinished(() => machine.remove())
  return machine
}

/** Lets Homebrew have a cluster of version 17, or of another one. */
function addCluster(machine: FakeMachine, version = 17): void {
  const [keg, data] = [KEG, DATA].map((path) => path.replace('17', String(version)))
  machine.write(`${keg}/bin/postgres`, '')
  machine.addProgram(`${keg}/bin/psql`)
  machine.write(`${data}/PG_VERSION`, `${version}\n`)
}

function setRunning(machine: FakeMachine, port: number): void {
  machine.setFlag('running-postgresql')
  machine.write(`${DATA}/postmaster.pid`, `1\n${DATA}\n1\n${port}\n/tmp\n`)
}

test('the plan for macOS installs by Homebrew and starts a daemon of launchd', async () => {
  const machine = mac()
  const { exit, out } = await machine.setUp('--dry-run')
  expect(exit).toBe(0)
  await expect(out).toMatchFileSnapshot(PLAN)
  expect(machine.takeChanges()).toEqual([])
})

test('every command of a setup on macOS was printed before', { tags: ['slow'] }, async () => {
  const machine = mac()
  const { out } = await machine.setUp('--dry-run')
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0, err: '' })
  const changes = machine.takeChanges()
  const plain = (text: string): string => text.replaceAll(/'\\''|['"]/g, '')
  expect(changes.length).toBeGreaterThan(18)
  for (const change of changes) expect(plain(out)).toContain(plain(change.replace(/^psql /, '')))
})

test('the second run on macOS changes nothing', { tags: ['slow'] }, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  machine.takeChanges()
  const before = machine.snapshot()
  const { out } = await machine.setUp('--yes')
  expect(out).toContain('Everything is done already')
  expect(machine.takeChanges()).toEqual([])
  expect(machine.snapshot()).toEqual(before)
})

test('the service reaches PostgreSQL through its socket as its user', {
  tags: ['slow'],
}, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  const url = machine.read('/etc/svc/identity-database-url')
  expect(url).toBe('postgres://svc@%2Ftmp:5432/svc\n')
  expect(machine.read('/etc/svc/environment')).toContain('SERVICE_RUNNER_SANDBOX=required\n')
  expect(machine.mode('/etc/svc/platform-identity-pepper')).toBe('640')
})

test.each(['brew', 'dscl', 'install', 'launchctl'])(
  'a setup on macOS continues after a failure of %s',
  { tags: ['slow'] },
  async (program) => {
    const machine = mac()
    machine.setFlag(`fail-${program}`)
    const failure = await machine.setUp('--yes').catch((error) => error)
    expect(failure).toMatchObject({ code: 'SERVER_SETUP_FAILED' })
    expect(failure.result.err).toContain(`${program}: the disk is on fire`)
    const first = machine.takeChanges()
    machine.removeFlag(`fail-${program}`)
    expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
    const second = machine.takeChanges()
    expect(second.filter((line) => first.includes(line))).toEqual([])
    expect(second[0]).toContain(program)
  },
)

test('a user that lacks its number is completed with the number of its group', async () => {
  const machine = mac()
  machine.setFlag('group-svc', '450')
  const { out } = await machine.setUp('--dry-run')
  expect(out).toContain('Create the group svc: already done')
  expect(out).toContain('dscl . -create /Users/svc PrimaryGroupID 450\n')
})

test('a service with another definition is ended before the new one is started', {
  tags: ['slow'],
}, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  machine.takeChanges()
  const text = machine.read(PLIST)
  machine.write(PLIST, text.replace('<integer>60</integer>', '<integer>50</integer>'))
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
  expect(machine.takeChanges()).toEqual([
    'launchctl bootout system/svc-server',
    'launchctl enable system/svc-server',
    `launchctl bootstrap system ${PLIST}`,
  ])
  expect(machine.read(PLIST)).toBe(text)
})

test('a service that stopped is started again', { tags: ['slow'] }, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  machine.takeChanges()
  machine.setFlag('loaded', 'not running')
  await machine.setUp('--yes')
  expect(machine.takeChanges()).toEqual(['launchctl kickstart system/svc-server'])
})

test('a service that launchd does not keep running fails the setup', {
  tags: ['slow'],
}, async () => {
  const machine = mac()
  machine.setFlag('crashes')
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure).toMatchObject({ code: 'SERVER_SETUP_FAILED' })
  expect(failure.result.err).toContain('/var/log/svc-server.log')
})

test('the removal on macOS ends the daemon and leaves data, settings and users', {
  tags: ['slow'],
}, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  machine.takeChanges()
  const before = machine.snapshot()
  const { exit, out } = await machine.setUp('--uninstall', '--yes')
  expect(exit).toBe(0)
  expect(machine.takeChanges()).toEqual(['launchctl bootout system/svc-server', `rm -f ${PLIST}`])
  delete before[PLIST.slice(1)]
  expect(machine.snapshot()).toEqual(before)
  expect(out).toContain(
    '  sudo -n -H -u alice -- /opt/homebrew/opt/postgresql@18/bin/dropdb ' +
      '--host=/tmp --port=5432 -- svc\n',
  )
  expect(out).toContain('  dscl . -delete /Users/svc\n')
  expect((await machine.setUp('--uninstall', '--yes')).out).toContain('Everything is done already')
})

test('a removal that ended after the service is continued', { tags: ['slow'] }, async () => {
  const machine = mac()
  await machine.setUp('--yes')
  machine.takeChanges()
  machine.removeFlag('loaded')
  await machine.setUp('--uninstall', '--yes')
  expect(machine.takeChanges()).toEqual([`rm -f ${PLIST}`])
})

test('a cluster that runs is used at its port, also beside a newer one', {
  tags: ['slow'],
}, async () => {
  const machine = mac()
  addCluster(machine, 18)
  addCluster(machine)
  setRunning(machine, 5433)
  const { out } = await machine.setUp('--yes')
  expect(machine.read('/etc/svc/identity-database-url')).toContain(':5433/')
  expect(out).toContain('postgresql@17 runs in the session of a person')
  expect(machine.takeChanges().filter((line) => line.startsWith('brew'))).toEqual([])
})

test('the cluster that starts with the machine is used, also while it does not run', async () => {
  const machine = mac()
  addCluster(machine, 18)
  addCluster(machine)
  machine.write('/Library/LaunchDaemons/homebrew.mxcl.postgresql@17.plist', '')
  machine.write(`${DATA}/postgresql.conf`, '#port = 5432\nport = 5440\n')
  machine.write(`${DATA}/pg_hba.conf`, '# trust\nlocal all all peer\n')
  const { out } = await machine.setUp('--dry-run')
  expect(out).toContain('services start --sudo-service-user=alice postgresql@17\n')
  expect(out).toContain('--port=5440')
  expect(out).not.toContain('every role')
})

test('a cluster that trusts every user is said to', async () => {
  const machine = mac()
  addCluster(machine)
  machine.write(`${DATA}/pg_hba.conf`, 'local all all peer\nhost all all 127.0.0.1/32 trust\n')
  expect((await machine.setUp('--dry-run')).out).toContain('lets every user of this machine')
})

test('Homebrew of an Intel Mac is found at its own prefix', async () => {
  const machine = mac()
  machine.removeFile('/opt/homebrew')
  machine.addHomebrew('/usr/local')
  const { out } = await machine.setUp('--dry-run')
  expect(out).toContain(' /usr/local/bin/brew install postgresql@18\n')
  expect(out).toContain(' /usr/local/opt/postgresql@18/bin/psql ')
  expect(out).not.toContain('/opt/homebrew')
})

test('root without sudo acts as the owner of Homebrew', async () => {
  const machine = mac()
  machine.environment = {}
  expect((await machine.setUp('--dry-run')).out).toContain(' -u alice -- env ')
})

test.each([
  ['without Homebrew', 'https://brew.sh', (machine: FakeMachine) => machine.removeFile('/opt')],
  [
    'whose Homebrew belongs to a user without a name',
    'does not run as root',
    (machine: FakeMachine) => machine.setFlag('fail-id'),
  ],
  [
    'whose Homebrew belongs to another person',
    'Let alice run it with sudo',
    (machine: FakeMachine) => {
      machine.environment = { SUDO_USER: 'bob' }
    },
  ],
  [
    'with another program at the port',
    'Another program listens at port 5432, which postgresql@18 needs',
    (machine: FakeMachine) => {
      machine.listens = true
    },
  ],
  [
    'with another program at the port of a cluster that does not run',
    'which postgresql@17 needs',
    (machine: FakeMachine) => {
      addCluster(machine)
      machine.listens = true
    },
  ],
  [
    'with an older PostgreSQL alone',
    'Homebrew has postgresql@14',
    (machine: FakeMachine) => addCluster(machine, 14),
  ],
  [
    'with a database of another role',
    '--database NAME',
    (machine: FakeMachine) => {
      addCluster(machine)
      setRunning(machine, 5432)
      machine.setFlag('database', 'another')
    },
  ],
  [
    'with a daemon that something else wrote',
    'Move it away',
    (machine: FakeMachine) => machine.write(PLIST, '<plist></plist>'),
  ],
  [
    'with the executable in the directory of a person',
    '/usr/local/bin',
    (machine: FakeMachine) => {
      machine.executable = '/Users/alice/bin/svc-server'
    },
  ],
])('a Mac %s is left as it is', async (_, remedy, prepare) => {
  const machine = mac()
  prepare(machine)
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure).toMatchObject({ code: 'SERVER_SETUP_UNSUPPORTED' })
  expect(failure.detail).toContain(remedy)
  expect(machine.takeChanges()).toEqual([])
})

test.runIf(process.geteuid?.() === 0)('a Mac whose Homebrew belongs to root is left', async () => {
  const machine = mac()
  machine.addHomebrew('/opt/homebrew', 0)
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure.detail).toContain('belongs to root')
  expect(machine.takeChanges()).toEqual([])
})

test('a Mac without Homebrew takes the database of another machine', async () => {
  const machine = mac()
  machine.removeFile('/opt')
  machine.write('/url', 'postgres://svc:hunter2@db.example.com/svc\n')
  const args = ['--yes', '--database-url-file', machine.path('/url')]
  expect(await machine.setUp(...args)).toMatchObject({ exit: 0 })
  const { out } = await machine.setUp('--uninstall', '--yes')
  expect(out).not.toContain('dropdb')
})

const PARSE =
  'import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'
const hasPython = spawnSync('python3', ['-c', 'import plistlib']).status === 0

test.runIf(hasPython)('the definition is a property list with each path as one word', () => {
  const parsed = spawnSync('python3', ['-c', PARSE], {
    input: plist('/opt/a & <b>/$& "c"/svc-server'),
    encoding: 'utf8',
  })
  expect(parsed.stderr).toBe('')
  expect(JSON.parse(parsed.stdout)).toEqual({
    Label: 'svc-server',
    ProgramArguments: [
      '/bin/sh',
      '-c',
      'set -a; . /etc/svc/environment; exec "$0" "$@"',
      '/opt/a & <b>/$& "c"/svc-server',
      'serve',
    ],
    UserName: 'svc',
    GroupName: 'svc',
    Umask: 0o077,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ExitTimeOut: 60,
    SoftResourceLimits: { NumberOfFiles: 10240 },
    StandardErrorPath: '/var/log/svc-server.log',
  })
})

test('an executable of Homebrew is named by the path that outlasts its version', () => {
  expect(lastingPath('/opt/homebrew/Cellar/svc/0.5.0/bin/svc-server')).toBe(
    '/opt/homebrew/opt/svc/bin/svc-server',
  )
  expect(lastingPath('/usr/local/bin/svc-server')).toBe('/usr/local/bin/svc-server')
})
