/**
 * The setup of a machine whose programs are fakes: real processes that record the commands which
 * change something. `e2e/shipped/setup.long.test.ts` runs it with the programs of Debian.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FakeMachine, type MachineFacts } from '../../../testing/setup/fake-machine.ts'

const TRIXIE: MachineFacts = {
  system: 'debian',
  release: 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n',
  hasSystemd: true,
}
const BOOKWORM: MachineFacts = {
  system: 'debian',
  release: 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n',
}
const FEDORA: MachineFacts = {
  system: 'fedora',
  release: 'PRETTY_NAME="Fedora Linux 43"\nID=fedora\nVERSION_ID=43\n',
  hasSystemd: true,
}
const ALPINE: MachineFacts = {
  system: 'alpine',
  release: 'PRETTY_NAME="Alpine Linux v3.23"\nID=alpine\nVERSION_ID=3.23.1\n',
}

/** The text of a dry run, accepted by a run of the tests with `-u`. */
function planFile(name: string): string {
  return join(import.meta.dirname, `../../../testing/setup/plans/${name}.txt`)
}

function machineOf(facts: MachineFacts): FakeMachine {
  const machine = new FakeMachine(facts)
  onTestFinished(() => machine.remove())
  return machine
}

/** The commands of the plan, without the words that all statements of the superuser share. */
function commandsOf(out: string): string[] {
  const shared = /runuser -u postgres -- psql .*'--command=(.*)'$/
  return out
    .split('\n')
    .filter((line) => /^ {3,}[0-9]*\S/.test(line))
    .map((line) => line.trim().replace(shared, 'psql: $1').replaceAll("'\\''", "'"))
}

test('the plan for Debian with systemd has every command, file and secret', async () => {
  const machine = machineOf(TRIXIE)
  const { exit, out } = await machine.setUp('--dry-run')
  expect(exit).toBe(0)
  await expect(out).toMatchFileSnapshot(planFile('debian'))
  expect(machine.takeChanges()).toEqual([])
})

test('the plan for a Debian with an older PostgreSQL adds another repository', async () => {
  const machine = machineOf(BOOKWORM)
  const { out } = await machine.setUp('--dry-run')
  await expect(out).toMatchFileSnapshot(planFile('debian-with-pgdg'))
})

test('the plan for Fedora installs with dnf and creates the cluster', async () => {
  const machine = machineOf(FEDORA)
  const { out } = await machine.setUp('--dry-run')
  await expect(out).toMatchFileSnapshot(planFile('fedora'))
})

test('the plan for Alpine installs with apk and starts services with OpenRC', async () => {
  const machine = machineOf(ALPINE)
  const { out } = await machine.setUp('--dry-run')
  await expect(out).toMatchFileSnapshot(planFile('alpine'))
})

test.each([
  ['Debian with systemd', TRIXIE],
  ['Debian without systemd', { ...TRIXIE, hasSystemd: false }],
  ['Debian with an older PostgreSQL', BOOKWORM],
  ['Fedora', FEDORA],
  ['Alpine', ALPINE],
] as const)('the second run on %s changes nothing', { tags: ['slow'] }, async (_, facts) => {
  const machine = machineOf(facts)
  const planned = commandsOf((await machine.setUp('--dry-run')).out).length
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0, err: '' })
  expect(machine.takeChanges().length).toBeGreaterThan(8)
  const before = machine.snapshot()
  const { exit, out } = await machine.setUp('--yes')
  expect(exit).toBe(0)
  expect(out).toContain('Everything is done already')
  expect(machine.takeChanges()).toEqual([])
  expect(machine.snapshot()).toEqual(before)
  expect(planned).toBeGreaterThan(10)
})

test('the commands that run are those of the plan', { tags: ['slow'] }, async () => {
  const machine = machineOf(TRIXIE)
  const { out } = await machine.setUp('--dry-run')
  await machine.setUp('--yes')
  const plan = commandsOf(out).join('\n')
  for (const change of machine.takeChanges()) {
    const words = change.split(' ')
    expect(plan).toContain(words.at(-1)!.replace(/^.*--command=/, ''))
  }
})

test('a failed step is named with its command, its output and the remedy', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  machine.setFlag('fail-useradd')
  const { err } = await machine.setUp('--yes').catch((error) => error.result)
  expect(err).toMatch(/The step "Create the user svc, .*" failed: useradd .* exit code 3\./)
  expect(err).toContain('    useradd: the disk is on fire\nCreate a system user svc')
  expect(err).toContain('Run the same command again to continue here.')
})

test('the run after a failed step begins with that step', { tags: ['slow'] }, async () => {
  const machine = machineOf(TRIXIE)
  machine.setFlag('fail-useradd')
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure).toMatchObject({ code: 'SERVER_SETUP_FAILED' })
  const first = machine.takeChanges()
  expect(first.some((line) => line.includes('create database'))).toBe(true)
  machine.removeFlag('fail-useradd')
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
  const second = machine.takeChanges()
  expect(second[0]).toMatch(/^useradd /)
  expect(second.filter((line) => first.includes(line))).toEqual([])
})

/** Removed one at a time after a complete setup, as if a run had ended before it. */
const EFFECTS = ['role', 'database', 'closed', 'user-svc', 'enabled-svc-server']

test.each(EFFECTS)(
  'a run that ended before %s is completed by the next one',
  { tags: ['slow'] },
  async (flag) => {
    const machine = machineOf(TRIXIE)
    await machine.setUp('--yes')
    machine.takeChanges()
    machine.removeFlag(flag)
    expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
    expect(machine.takeChanges()).toHaveLength(1)
  },
)

test('systemd reads the service again after a version with another unit', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  await machine.setUp('--yes')
  machine.takeChanges()
  const path = '/etc/systemd/system/svc-server.service'
  const unit = machine.read(path)
  machine.write(path, unit.replace('TimeoutStopSec=60', 'TimeoutStopSec=50'))
  machine.setFlag('stale')
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
  expect(machine.takeChanges()).toEqual(['systemctl daemon-reload'])
  expect(machine.read(path)).toBe(unit)
})

test('a step whose commands succeed without a result fails', async () => {
  const machine = machineOf(TRIXIE)
  machine.setFlag('idle-useradd')
  const { err } = await machine.setUp('--yes').catch((error) => error.result)
  expect(err).toContain('failed: its commands succeeded, and their result is missing.')
  expect(machine.exists('/etc/svc')).toBe(false)
})

test('a server that does not answer fails the last step, which names its log', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  machine.startsServer = false
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure).toMatchObject({
    code: 'SERVER_SETUP_FAILED',
    detail: 'Wait until the server is ready',
  })
  expect(failure.result.err).toContain('waited in vain until the server answers')
  expect(failure.result.err).toContain('journalctl --unit svc-server')
})

test('a group on Alpine whose user is missing is completed', { tags: ['slow'] }, async () => {
  const machine = machineOf(ALPINE)
  machine.setFlag('fail-adduser')
  await machine.setUp('--yes').catch(() => {})
  machine.removeFlag('fail-adduser')
  machine.takeChanges()
  expect(await machine.setUp('--yes')).toMatchObject({ exit: 0 })
  expect(machine.takeChanges()[0]).toMatch(/^adduser /)
})

test('a removal on Alpine that ended after the runlevel is continued', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(ALPINE)
  await machine.setUp('--yes')
  machine.removeFile('/etc/runlevels/default/svc-server')
  machine.takeChanges()
  await machine.setUp('--uninstall', '--yes')
  const changes = machine.takeChanges()
  expect(changes.at(-1)).toBe('rm -f /etc/init.d/svc-server')
  expect(changes.some((line) => line.startsWith('rc-update'))).toBe(false)
})

test('a state directory that others can read becomes private', { tags: ['slow'] }, async () => {
  const machine = machineOf(TRIXIE)
  machine.write('/var/lib/svc/state/file', '')
  await machine.setUp('--yes')
  expect(machine.mode('/var/lib/svc/state')).toBe('700')
})

test.runIf(process.geteuid?.() === 0)(
  'settings of the service user become those of root',
  { tags: ['slow'] },
  async () => {
    const machine = machineOf(TRIXIE)
    await machine.setUp('--yes')
    machine.takeChanges()
    chownSync(machine.path('/etc/svc'), 1234, process.getegid!())
    const failure = await machine.setUp('--yes').catch((error) => error)
    // The program of the test does not change the owner, so the step has no result.
    expect(failure).toMatchObject({ detail: 'Create the directory /etc/svc' })
    expect(machine.takeChanges()).toEqual(['install -d -m 0750 -o root -g svc /etc/svc'])
  },
)

test('a person who may not see the settings is told to use sudo', () => {
  const isRoot = process.geteuid?.() === 0
  const machine = machineOf(TRIXIE)
  machine.write('/etc/svc/environment', '')
  chmodSync(machine.path('/etc/svc'), 0)
  chmodSync(machine.path('/'), 0o755)
  chmodSync(join(machine.path('/'), '..'), 0o755)
  const script =
    `const { Machine } = await import('${join(import.meta.dirname, 'machine.ts')}')\n` +
    `const prefix = '${machine.path('').replace(/\/$/, '')}'\n` +
    `const machine = new Machine({ environment: {}, executable: '', isRoot: false, prefix })\n` +
    `for (const name of ['state', 'read']) {\n` +
    `  try { machine[name]('/etc/svc/environment') } catch (e) { console.log(e.code, e.detail) }\n}`
  const user = isRoot ? { uid: 65534, gid: 65534 } : {}
  const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', ...user })
  const said = /^SERVER_SETUP_UNSUPPORTED .*environment cannot be read.*with sudo$/
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(said),
    expect.stringMatching(said),
  ])
})

test('the commands that destroy a database name the port of its cluster', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  machine.addClusters('16  main    5433 online postgres /var/lib/postgresql/16/main /log')
  await machine.setUp('--yes')
  const { out } = await machine.setUp('--uninstall', '--yes')
  expect(out).toContain('  runuser -u postgres -- dropdb --port=5433 -- svc\n')
  expect(out).toContain('  runuser -u postgres -- dropuser --port=5433 -- svc\n')
})

test('nothing changes where the person on the terminal does not agree', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  machine.answer = false
  const { exit, out } = await machine.setUp()
  expect([exit, machine.takeChanges()]).toEqual([1, []])
  expect(out).toMatch(/Continue\? \[y\/N\] Nothing was changed\.\n$/)
  machine.answer = true
  expect((await machine.setUp()).exit).toBe(0)
  expect(machine.takeChanges().length).toBeGreaterThan(8)
})

test('nothing changes without a terminal and without --yes', async () => {
  const machine = machineOf(TRIXIE)
  const { exit, err } = await machine.setUp()
  expect([exit, machine.takeChanges()]).toEqual([2, []])
  expect(err).toContain('Add --yes')
})

test('a person who is not root is told so before anything changes', async () => {
  const machine = machineOf(TRIXIE)
  machine.isRoot = false
  await expect(machine.setUp('--yes')).rejects.toMatchObject({ code: 'SERVER_SETUP_UNSUPPORTED' })
  expect(machine.takeChanges()).toEqual([])
  expect((await machine.setUp('--dry-run')).exit).toBe(0)
})

test('settings and secrets are readable by the service alone, and stay', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  await machine.setUp('--yes')
  const pepper = machine.read('/etc/svc/platform-identity-pepper')
  expect(pepper).toMatch(/^[A-Za-z0-9_-]{43}\n$/)
  for (const name of ['environment', 'identity-database-url', 'platform-identity-pepper']) {
    expect([name, machine.mode(`/etc/svc/${name}`)]).toEqual([name, '640'])
  }
  expect(machine.mode('/etc/svc')).toBe('750')
  expect(machine.mode('/var/lib/svc')).toBe('700')
  machine.write('/etc/svc/environment', `${machine.read('/etc/svc/environment')}# mine\n`)
  for (const name of ['environment', 'platform-identity-pepper']) {
    chmodSync(machine.path(`/etc/svc/${name}`), 0o600)
  }
  await machine.setUp('--yes')
  expect(machine.mode('/etc/svc/platform-identity-pepper')).toBe('640')
  expect(machine.read('/etc/svc/environment')).toContain('# mine')
  expect(machine.read('/etc/svc/platform-identity-pepper')).toBe(pepper)
})

test('existing settings stay, and the operator hears what they lack', async () => {
  const machine = machineOf(TRIXIE)
  const text = 'SERVICE_IDENTITY_DATABASE_URL_FILE=/etc/svc/identity-database-url\n'
  machine.write('/etc/svc/environment', text)
  const { out } = await machine.setUp('--yes', '--public-url', 'https://manage.example.com')
  expect(out).toContain('has no SERVICE_PRODUCT_ROOT: add /var/lib/svc/product')
  expect(out).toContain('--public-url has no effect')
  expect(machine.read('/etc/svc/environment')).toBe(text)
})

test('no output has a secret', async () => {
  const machine = machineOf(TRIXIE)
  machine.write('/url', 'postgres://svc:hunter2@db.example.com/svc\n')
  const args = ['--database-url-file', machine.path('/url')]
  const outputs = [await machine.setUp(...args, '--dry-run'), await machine.setUp(...args, '--yes')]
  const pepper = machine.read('/etc/svc/platform-identity-pepper').trim()
  expect(machine.read('/etc/svc/identity-database-url')).toContain('hunter2')
  for (const { out, err } of outputs) {
    expect(out + err).not.toContain('hunter2')
    expect(out + err).not.toContain(pepper)
  }
})

test('a database of another machine needs no PostgreSQL on this one', async () => {
  const machine = machineOf(BOOKWORM)
  machine.write('/url', 'postgres://svc:hunter2@db.example.com/svc\n')
  await machine.setUp('--yes', '--database-url-file', machine.path('/url'))
  expect(machine.takeChanges().filter((line) => /^(?:apt-get|psql)/.test(line))).toEqual([])
  // The next run needs no option to know it.
  expect((await machine.setUp('--yes')).out).toContain('Everything is done already')
})

test('a running PostgreSQL of 16 or newer is used at its port', async () => {
  const machine = machineOf(TRIXIE)
  const clusters = [
    '15  old     5432 online postgres /var/lib/postgresql/15/old /log',
    '16  main    5433 online postgres /var/lib/postgresql/16/main /log',
  ]
  machine.addClusters(...clusters)
  await machine.setUp('--yes')
  expect(machine.read('/etc/svc/identity-database-url')).toBe(
    'postgres://svc@%2Fvar%2Frun%2Fpostgresql:5433/svc\n',
  )
  expect(machine.takeChanges().filter((line) => line.startsWith('apt-get'))).toEqual([])
})

test.each([
  [
    'only an older PostgreSQL',
    'pg_upgradecluster',
    (machine: FakeMachine) =>
      machine.addClusters('15  main    5432 online postgres /var/lib/postgresql/15 /log'),
  ],
  [
    'another program at the port of PostgreSQL',
    '--database-url-file',
    (machine: FakeMachine) => {
      machine.listens = true
    },
  ],
  [
    'settings of another server',
    'was set up in another way',
    (machine: FakeMachine) =>
      machine.write('/etc/svc/environment', 'SERVICE_IDENTITY_DATABASE_URL=postgres://a@b/c\n'),
  ],
  [
    'a unit of another program',
    'Move it away',
    (machine: FakeMachine) =>
      machine.write('/etc/systemd/system/svc-server.service', '[Service]\nExecStart=/bin/other\n'),
  ],
  [
    'a database of another role',
    '--database NAME',
    (machine: FakeMachine) => {
      machine.addClusters('17  main    5432 online postgres /var/lib/postgresql/17 /log')
      machine.setFlag('database', 'another')
    },
  ],
  [
    'an executable in the directory of a person',
    '/usr/local/bin',
    (machine: FakeMachine) => {
      machine.executable = '/home/alice/bin/svc-server'
    },
  ],
])('a machine with %s is left as it is', async (_, remedy, prepare) => {
  const machine = machineOf(TRIXIE)
  prepare(machine)
  const failure = await machine.setUp('--yes').catch((error) => error)
  expect(failure).toMatchObject({ code: 'SERVER_SETUP_UNSUPPORTED' })
  expect(failure.detail).toContain(remedy)
  expect(machine.takeChanges()).toEqual([])
})

test('another distribution is left as it is', async () => {
  const machine = machineOf({ system: 'debian', release: 'ID=arch\n' })
  await expect(machine.setUp('--yes')).rejects.toMatchObject({ code: 'SERVER_SETUP_UNSUPPORTED' })
})

test('names with quotes and blanks reach PostgreSQL and the URL as they are', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  const name = `a"b'c\\ -- (drop)`
  await machine.setUp('--yes', '--database', name)
  const changes = machine.takeChanges().filter((line) => line.startsWith('psql'))
  expect(changes[1]).toContain('create database "a""b\'c\\ -- (drop)" owner "svc"')
  const url = new URL(machine.read('/etc/svc/identity-database-url').trim())
  expect(decodeURIComponent(url.pathname)).toBe(`/${name}`)
})

test('a path with blanks and quotes is one word of the unit', async () => {
  const machine = machineOf(TRIXIE)
  machine.executable = '/opt/my "own" 100%/svc-server'
  machine.write('/opt/my "own" 100%/svc', '')
  const { out } = await machine.setUp('--dry-run')
  expect(out).toContain(`'/opt/my "own" 100%/svc' init`)
})

test('the removal stops the service, and leaves data, settings and secrets', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  await machine.setUp('--yes')
  machine.takeChanges()
  const before = machine.snapshot()
  const { exit, out } = await machine.setUp('--uninstall', '--yes')
  expect(exit).toBe(0)
  expect(machine.takeChanges()).toEqual([
    'systemctl disable --now svc-server',
    'rm -f /etc/systemd/system/svc-server.service',
    'systemctl daemon-reload',
  ])
  const unit = 'etc/systemd/system/svc-server.service'
  expect(before).toHaveProperty([unit])
  delete before[unit]
  expect(machine.snapshot()).toEqual(before)
  expect(out).toContain('dropdb')
  expect((await machine.setUp('--uninstall', '--yes')).out).toContain('Everything is done already')
  expect(machine.takeChanges()).toEqual([])
})

test('the owner is told the login command until the code was used', {
  tags: ['slow'],
}, async () => {
  const machine = machineOf(TRIXIE)
  expect((await machine.setUp('--yes')).out).toContain('The first owner has logged in.')
  machine.write('/var/lib/svc/state/bootstrap/initial-owner.code', 'rk_inv_v1_secret\n')
  machine.environment = { SUDO_USER: 'alice' }
  rmSync(machine.path('/etc/svc/environment'))
  const { out } = await machine.setUp('--yes', '--public-url', 'https://manage.example.com')
  expect(out).toContain(
    '  SVC_CODE="$(sudo cat /var/lib/svc/state/bootstrap/initial-owner.code)" ' +
      'svc login --url https://manage.example.com --code-env SVC_CODE\n',
  )
  expect(out).not.toContain('rk_inv_v1_secret')
  expect(out).toContain('--environment-id env_01M8DT6YP1NSE8A5E3HFY974DX')
  expect(machine.read('/etc/svc/environment')).toContain(
    'SERVICE_PUBLIC_MANAGEMENT_URL=https://manage.example.com\n' +
      'SERVICE_MANAGEMENT_TLS_TERMINATED=true\n',
  )
})
