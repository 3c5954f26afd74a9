/**
 * Goal: nothing is replaced that its owner did not sign, and a server that does not become ready is
 * put back. Method: an installation of scripts under a script in place of systemctl, and a release
 * that the test signs and then damages.
 */
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { archiveName, MinisignKey, signSums } from '../../../../testing/client/signed-releases.ts'
import {
  NEW,
  OLD,
  type SiteOptions,
  UNTOUCHED,
  UpgradeSite,
} from '../../../../testing/client/upgrade-site.ts'

function site(options: SiteOptions = {}): UpgradeSite {
  const made = new UpgradeSite(options)
  onTestFinished(() => made[Symbol.dispose]())
  return made
}

const UPGRADED = { server: NEW, client: NEW, running: NEW, beside: ['svc-server.previous'] }

describe('svc upgrade', () => {
  test('an upgrade replaces both names, restarts the server and waits for it', async () => {
    const machine = site()
    const { exit, out, err } = await machine.upgrade()
    expect([exit, err]).toEqual([0, 'Restarting svc-server.service.\n'])
    expect(out).toContain(`from ${OLD} to ${NEW}.\nsvc-server.service (systemd) was restarted`)
    expect(machine.seen()).toEqual(UPGRADED)
    expect(machine.read('state/calls')).toBe('restart\n')
    expect(machine.read('bin/svc-server.previous')).toBe(machine.executable(OLD))
    for (const name of ['svc', 'svc-server']) {
      expect(statSync(join(machine.bin, name)).mode & 0o777).toBe(0o755)
    }
  })

  test('the new version checks the server with the settings of the service', async () => {
    const machine = site()
    await machine.upgrade()
    expect(machine.read('state/checks')).toBe(`${NEW} /var/lib/svc word\n`.repeat(2))
  })

  test('pages and completions are replaced, but for changed ones, which are named', async () => {
    const machine = site()
    const changed = join(machine.pages, 'zsh/site-functions/_svc')
    appendFileSync(changed, '# own\n')
    const { out } = await machine.upgrade()
    expect(machine.read('pages/man/man1/svc.1')).toBe(`man/man1/svc.1 of ${NEW}\n`)
    expect(machine.read('pages/man/man1/svc-upgrade.1')).toBe('a new page\n')
    expect(readFileSync(changed, 'utf8')).toContain('# own')
    expect(out).toContain(`Left as it is: ${changed}`)
    expect(machine.read('bin/.svc-install/files/LICENSE')).toBe('new licence')
    const receipt = machine.read('bin/.svc-install/receipt')
    expect(receipt).toMatch(/^version 0\.6\.0\ntarget linux-x64\nartefact [0-9a-f]{64}\n/)
    expect((await machine.upgrade()).out).toContain(`${NEW} is installed`)
  })

  test('an upgrade does not start a server that did not run', async () => {
    const machine = site({ isRunning: false })
    const { exit, out } = await machine.upgrade()
    expect([exit, out]).toEqual([0, expect.stringContaining('does not run, so it was not started')])
    expect(machine.seen()).toEqual({ ...UPGRADED, running: '' })
  })

  test('an upgrade says that a server without a service must be restarted', async () => {
    const machine = site({ hasService: false })
    const { exit, out } = await machine.upgrade()
    expect([exit, out]).toEqual([0, expect.stringContaining('Restart a server that runs')])
    expect(machine.seen()).toEqual({ ...UPGRADED, running: OLD })
  })

  test('an upgrade to the installed version changes nothing', async () => {
    const machine = site()
    machine.publish(OLD)
    const { exit, out } = await machine.upgrade('--json')
    expect([exit, JSON.parse(out)]).toEqual([
      0,
      expect.objectContaining({ outcome: 'current', from: OLD, to: OLD }),
    ])
    expect(machine.seen()).toEqual(UNTOUCHED)
  })

  test('--check says what the new version finds, and leaves no file behind', async () => {
    const machine = site()
    const { exit, out } = await machine.upgrade('--check')
    expect(exit).toBe(0)
    expect(out).toContain(`${OLD} in ${machine.bin} would be replaced by ${NEW}`)
    expect(out).toContain(`Report of ${NEW}.`)
    expect(machine.seen()).toEqual(UNTOUCHED)
    expect(machine.read('state/calls')).toBe('')
  })

  test('an address may have the version in it', async () => {
    const machine = site()
    const from = ['--from', `${machine.root}/{version}`]
    expect((await machine.upgrade(...from)).err).toContain('name the version with --version')
    const { exit, err } = await machine.upgrade('--from', machine.release, '--version', '0.7.0')
    expect([exit, err]).toEqual([5, expect.stringContaining(`is ${NEW}, not 0.7.0`)])
    expect(machine.seen()).toEqual(UNTOUCHED)
  })
})

/** Damages of a release, each with the code and a part of the reason. */
const DAMAGES: readonly (readonly [string, (machine: UpgradeSite) => void, string, string])[] = [
  [
    'with a changed byte in the archive',
    (machine) => change(machine, archiveName(NEW)),
    'CLIENT_UPGRADE_UNTRUSTED',
    'was signed',
  ],
  [
    'with a changed byte in the list',
    (machine) => change(machine, 'SHA256SUMS'),
    'CLIENT_UPGRADE_UNTRUSTED',
    'signature of SHA256SUMS is wrong',
  ],
  [
    'with a changed byte in the signature',
    (machine) => change(machine, 'SHA256SUMS.minisig', 60),
    'CLIENT_UPGRADE_UNTRUSTED',
    'SHA256SUMS',
  ],
  [
    'without a signature',
    (machine) => rmSync(join(machine.release, 'SHA256SUMS.minisig')),
    'CLIENT_UPGRADE_UNTRUSTED',
    'no SHA256SUMS.minisig',
  ],
  [
    'that another key signed',
    (machine) => machine.publish(NEW, { key: new MinisignKey() }),
    'CLIENT_UPGRADE_UNTRUSTED',
    'Another key',
  ],
  [
    'whose comment names another product',
    (machine) => {
      const sums = readFileSync(join(machine.release, 'SHA256SUMS'), 'utf8')
      const signature = machine.key.sign(sums, `other ${NEW} 2026-11-27T05:00:00Z`)
      writeFileSync(join(machine.release, 'SHA256SUMS.minisig'), signature)
    },
    'CLIENT_UPGRADE_UNTRUSTED',
    'names no version',
  ],
  [
    'whose list has a line of another form',
    (machine) => signSums(machine.release, 'x\n', { version: NEW, key: machine.key }),
    'CLIENT_UPGRADE_UNTRUSTED',
    'has a line',
  ],
  [
    'without a build for this machine',
    (machine) => {
      const sums = `${'0'.repeat(64)}  svc-${NEW}-plan9-mips.tar.gz\n`
      signSums(machine.release, sums, { version: NEW, key: machine.key })
    },
    'CLIENT_UPGRADE_UNDELIVERED',
    'no build for linux-x64',
  ],
  [
    'that is older',
    (machine) => machine.publish('0.4.9'),
    'CLIENT_UPGRADE_OLDER',
    `0.4.9, and ${OLD} is installed`,
  ],
  [
    'whose executable says another version',
    (machine) => machine.publish(NEW, { executable: machine.executable('0.6.1') }),
    'CLIENT_UPGRADE_BLOCKED',
    'says that it is 0.6.1',
  ],
  [
    'whose executable does not run',
    (machine) => machine.publish(NEW, { executable: '#!/bin/sh\nexit 127\n' }),
    'CLIENT_UPGRADE_BLOCKED',
    'does not run on this machine',
  ],
  [
    'that would not start with the settings',
    (machine) => machine.check(NEW, { exit: 78 }),
    'CLIENT_UPGRADE_BLOCKED',
    `Report of ${NEW}.`,
  ],
]

function change(machine: UpgradeSite, name: string, at = 20): void {
  const path = join(machine.release, name)
  const bytes = readFileSync(path)
  bytes[at]! ^= 1
  writeFileSync(path, bytes)
}

test.each(DAMAGES)('a release %s is rejected, and nothing is replaced', async (...row) => {
  const [, damage, code, reason] = row
  const machine = site()
  damage(machine)
  const { exit, err } = await machine.upgrade('--yes')
  expect(exit).not.toBe(0)
  expect(err).toContain(`svc: ${code}: `)
  expect(err).toContain(reason)
  expect(err).toContain('Nothing was replaced.')
  expect(machine.seen()).toEqual(UNTOUCHED)
  expect(machine.read('state/calls')).toBe('')
})

test('no changed byte of an archive is accepted', { tags: ['slow'] }, async () => {
  const machine = site()
  const length = readFileSync(join(machine.release, archiveName(NEW))).length
  for (let at = 0; at < length; at += Math.ceil(length / 12)) {
    machine.publish()
    change(machine, archiveName(NEW), at)
    expect((await machine.upgrade()).err).toContain('svc: CLIENT_UPGRADE_UNTRUSTED')
  }
  expect(machine.seen()).toEqual(UNTOUCHED)
})

test('an upgrade without a key reads nothing of the release', async () => {
  const machine = site()
  const { exit, err } = await machine.client.run('upgrade', '--from', machine.release)
  expect([exit, err]).toEqual([2, expect.stringContaining('has no key of its releases')])
  const wrong = join(machine.release, 'SHA256SUMS')
  const other = await machine.upgrade('--public-key-file', wrong)
  expect([other.exit, other.err]).toEqual([2, expect.stringContaining('not a public key')])
  expect(machine.seen()).toEqual(UNTOUCHED)
})

test('an older version is installed where that is permitted', async () => {
  const machine = site()
  machine.publish('0.4.9')
  machine.check('0.4.9', { exit: 0 })
  expect((await machine.upgrade('--allow-downgrade')).exit).toBe(0)
  expect(machine.seen()).toMatchObject({ server: '0.4.9', client: '0.4.9', running: '0.4.9' })
})

describe('an upgrade that is one way', () => {
  test('a one-way upgrade needs a permission, and another one without a backup', async () => {
    const machine = site()
    machine.check(NEW, { exit: 4 })
    const plain = await machine.upgrade('--yes')
    expect([plain.exit, plain.err]).toEqual([4, expect.stringContaining('No backup would be made')])
    machine.check(NEW, { exit: 4, backup: 'root' })
    const asked = await machine.upgrade()
    expect([asked.exit, asked.err]).toEqual([4, expect.stringContaining('again with --yes')])
    expect(machine.seen()).toEqual(UNTOUCHED)
    expect((await machine.upgrade('--yes')).exit).toBe(0)
    expect(machine.seen()).toEqual(UPGRADED)
  })

  test('a one-way upgrade is taken back while nothing was migrated', async () => {
    const machine = site()
    machine.check(NEW, { exit: 4, backup: 'root' })
    machine.let(NEW, 'fails')
    const { exit, err } = await machine.upgrade('--yes')
    expect([exit, err]).toEqual([1, expect.stringContaining('CLIENT_UPGRADE_ROLLED_BACK')])
    expect(machine.seen()).toMatchObject({ server: OLD, client: OLD, running: OLD })
  })

  test('a one-way upgrade is not taken back once the databases were migrated', {
    tags: ['slow'],
  }, async () => {
    const machine = site()
    machine.check(NEW, { exit: 4, backup: 'root' })
    machine.let(NEW, 'migrates')
    machine.let(NEW, 'broken')
    const { exit, err } = await machine.upgrade('--yes')
    expect(exit).toBe(9)
    expect(err).toContain('The databases were migrated, and 0.5.0 cannot start on them')
    expect(err).toContain('The way back is the backup')
    // The manager continues to start the new version, which both names are.
    expect(machine.seen()).toEqual(UPGRADED)
    expect(machine.read('state/calls')).toBe('restart\nstop\nstart\n')
  })
})

describe('a server that does not become ready', () => {
  test('the previous version serves again, and the error has the end of the log', {
    tags: ['slow'],
  }, async () => {
    const machine = site()
    machine.let(NEW, 'broken')
    const { exit, err } = await machine.upgrade()
    expect(exit).toBe(1)
    expect(err).toContain('CLIENT_UPGRADE_ROLLED_BACK')
    expect(err).toContain(`version ${NEW} starts`)
    expect(machine.read('state/calls')).toBe('restart\nstop\nstart\n')
    expect(machine.seen()).toEqual({ ...UNTOUCHED, beside: ['svc-server.previous'] })
    expect(machine.read('bin/.svc-install/receipt')).toContain(`version ${OLD}`)
  })

  test('the previous version serves at once if the manager has given up', async () => {
    const machine = site()
    machine.let(NEW, 'fails')
    const before = machine.client.pausedMillis
    expect((await machine.upgrade()).err).toContain('CLIENT_UPGRADE_ROLLED_BACK')
    expect(machine.client.pausedMillis - before).toBe(0)
    expect(machine.seen()).toMatchObject({ server: OLD, running: OLD })
  })

  test('the wait includes the estimate of the migrations', { tags: ['slow'] }, async () => {
    const machine = site()
    machine.check(NEW, { exit: 0, seconds: 20 })
    machine.let(NEW, 'broken')
    const before = machine.client.pausedMillis
    await machine.upgrade()
    expect(machine.client.pausedMillis - before).toBeGreaterThan(120_000)
  })

  test('the error says that the previous version is not ready either', {
    tags: ['slow'],
  }, async () => {
    const machine = site()
    machine.let(NEW, 'broken')
    machine.let(OLD, 'broken')
    const { exit, err } = await machine.upgrade()
    expect([exit, err]).toEqual([9, expect.stringContaining('was restored, and is not ready')])
    expect(machine.seen().server).toBe(OLD)
  })
})

describe('an installation that is not replaced', () => {
  test.each([
    ['deb', 'apt-get install --only-upgrade svc'],
    ['rpm', 'dnf upgrade svc'],
    ['brew', 'brew upgrade svc'],
    ['nix', 'nix profile upgrade'],
  ])('a package of %s owns it, and its command is named', async (kind, next) => {
    const machine = site()
    mkdirSync(join(machine.root, 'share/svc'), { recursive: true })
    writeFileSync(join(machine.root, 'share/svc/installed-by'), `${kind}\n`)
    const { exit, err } = await machine.upgrade()
    expect([exit, err]).toEqual([4, expect.stringContaining(next)])
    expect(machine.seen()).toEqual(UNTOUCHED)
  })

  test('a package that dpkg or rpm names owns it', async () => {
    const machine = site()
    const put = (name: string, text: string) =>
      writeFileSync(join(machine.root, 'tools', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    put('rpm', 'echo svc-server-rpm')
    expect((await machine.upgrade()).err).toContain('Run: dnf upgrade svc-server-rpm')
    put('dpkg', 'echo "svc-server-deb: $2"')
    expect((await machine.upgrade()).err).toContain('--only-upgrade svc-server-deb')
    expect(machine.seen()).toEqual(UNTOUCHED)
  })

  test('the packed client and other executables are not replaced', async () => {
    const machine = site()
    machine.client.program = { path: '/usr/bin/node', userId: 0 }
    expect((await machine.upgrade()).err).toContain('This is not the svc executable.')
    machine.client.program = { path: join(machine.bin, 'svc'), userId: 0 }
    rmSync(join(machine.bin, '.svc-install'), { recursive: true })
    expect((await machine.upgrade()).err).toContain('is not an executable of a release')
  })
})

test('a service of another user is upgraded by root alone', async () => {
  const machine = site()
  const path = join(machine.root, 'tools/systemctl')
  const script = readFileSync(path, 'utf8').replace(/User=.*/, 'User=daemon')
  writeFileSync(path, script)
  machine.client.program = { path: join(machine.bin, 'svc'), userId: 4_242 }
  const { exit, err } = await machine.upgrade()
  expect([exit, err]).toEqual([4, expect.stringContaining('Run the command as root.')])
  expect(machine.seen()).toEqual(UNTOUCHED)
})

test('an interrupt of the download leaves no file behind', async () => {
  const machine = site()
  machine.client.fetch = async (url, init) => {
    if (!url.endsWith('.tar.gz')) {
      return new Response(readFileSync(join(machine.release, url.split('/').at(-1)!)))
    }
    machine.client.interrupt()
    return new Promise((_, reject) => {
      const fail = (): void => reject(init.signal!.reason)
      if (init.signal!.aborted) fail()
      else init.signal!.addEventListener('abort', fail)
    })
  }
  const { exit, err } = await machine.upgrade('--from', 'https://releases.test')
  expect([exit, err]).toEqual([130, expect.stringContaining('CLIENT_INTERRUPTED')])
  expect(machine.seen()).toEqual(UNTOUCHED)
})

test('two upgrades of one installation do not run at once', async () => {
  const machine = site()
  const runs = await Promise.all([machine.upgrade(), machine.upgrade()])
  const exits = runs.map(({ exit }) => exit).sort()
  const rejected = runs.find(({ exit }) => exit === 4)
  expect([exits, rejected?.err]).toEqual([[0, 4], expect.stringContaining('UPGRADE_RUNNING')])
  expect(machine.seen()).toEqual(UPGRADED)
})
