/**
 * Goal: one command takes an empty Debian to a server that answers. Method: debootstrap makes a
 * root, the installer of a release runs in it, and the commands that the setup prints are run as
 * they are. systemd runs in the root as process 1, so the unit is applied by the program that
 * operators use.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  BootedRoot,
  copyRoot,
  createRoot,
  missingForRoots,
} from '../../testing/setup/debian-roots.ts'
import { Installer } from '../../testing/setup/installer.ts'
import { SERVER } from '../harness.ts'

const DEADLINE_MS = 30 * 60_000
const UNIT = '/etc/systemd/system/svc-server.service'
const PLAIN = ['/bin/sleep', 'infinity']
const SYSTEMD = ['/lib/systemd/systemd', '--log-target=journal', '--show-status=0']
const SETTINGS = 'set -a; . /etc/svc/environment; set +a'

const missing = await missingForRoots()
const where = missing === null ? '' : ` (${missing})`

let installer: Installer
let work: string
beforeAll(() => {
  if (missing !== null) return
  // Not below /tmp, which the unit gives the service an empty one of.
  work = mkdtempSync('/var/tmp/svc-roots-')
  const [, version = ''] = /^svc-server (\S+)/.exec(
    spawnSync(SERVER, ['version'], { encoding: 'utf8' }).stdout,
  )!
  installer = new Installer()
  installer.release({ executable: { bytes: readFileSync(SERVER), version } })
  createRoot(join(work, 'trixie'), 'trixie')
}, DEADLINE_MS)
afterAll(() => {
  if (missing !== null) return
  installer.remove()
  rmSync(work, { recursive: true, force: true })
})

/** Boots a copy of the root of Debian 13 with the mirror of the release in /mirror. */
async function booted(name: string, init: readonly string[], packages = ''): Promise<BootedRoot> {
  const directory = join(work, name)
  copyRoot(join(work, 'trixie'), directory)
  if (packages !== '') {
    const apt = `apt-get update && apt-get install -y --no-install-recommends ${packages}`
    const { status, stdout } = spawnSync('chroot', [directory, '/bin/sh', '-c', apt], {
      encoding: 'utf8',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' },
    })
    expect(status, stdout).toBe(0)
  }
  return await bootedAt(directory, init)
}

async function bootedAt(directory: string, init: readonly string[]): Promise<BootedRoot> {
  const root = await BootedRoot.boot(directory, init)
  onTestFinished(() => root.stop(), DEADLINE_MS)
  root.copy(join(installer.work, 'mirror'), 'mirror')
  root.write('mirror/install.sh', readFileSync(join(installer.work, 'install.sh')))
  return root
}

const INSTALL = 'SVC_BASE_URL=file:///mirror sh /mirror/install.sh --with-postgres --yes'

function succeeds(root: BootedRoot, script: string): string {
  const { status, stdout, stderr } = root.run(script)
  expect(status, `${script}\n${stdout.slice(-4_000)}\n${stderr.slice(-4_000)}`).toBe(0)
  return stdout
}

/** The indented lines below a heading of the text that the setup prints at its end. */
function printed(output: string, heading: string): string {
  const [, after = ''] = output.split(`\n${heading}\n`)
  return after.split('\n\n')[0]!
}

/** Logs in, releases and calls, with the commands that the setup printed and those of README.md. */
function firstCall(root: BootedRoot, output: string): string {
  return succeeds(
    root,
    [
      'set -e',
      printed(output, 'Log in as the owner, with a code that works once:'),
      printed(output, 'Release the example to the Channel production:'),
      `CLIENT=$(svc clients create --root my-app --name web --kind public --json |
        grep -o 'app_[0-9A-Z]*' | head -n 1)`,
      'svc credentials create --root my-app --client "$CLIENT" --name first --key-out web.key',
      CALL('channels.create', '{"name":"general","author":"me"}'),
      CALL('channels.list', '{}'),
    ].join('\n'),
  )
}

function CALL(name: string, args: string): string {
  return `KEY="$(cat web.key)" SVC_ALLOW_LOOPBACK_HTTP=true svc call ${name} '${args}' \\
    --root my-app --url http://127.0.0.1:3210 --key-env KEY --target channel:production`
}

/** Everything that a setup writes, with owners, modes, times and contents. */
function written(root: BootedRoot): string {
  const list = "find /etc/svc /var/lib/svc/product/keyring.json -printf '%p %u:%g %m %T@ %i\\n'"
  return succeeds(root, `${list} | sort; sha256sum /etc/svc/* ${UNIT} 2>/dev/null; ls /etc/apt/*`)
}

test.skipIf(missing !== null)(
  `an empty Debian answers a call after one command, without a service manager${where}`,
  async () => {
    const root = await booted('plain', PLAIN)
    const begin = performance.now()
    const output = succeeds(root, INSTALL)
    const start = printed(output, 'Start the server:').trim()
    succeeds(root, `setsid sh -c '${start}' >/root/server.log 2>&1 </dev/null &`)
    succeeds(root, `(${SETTINGS}; until svc-server ready; do sleep 0.2; done) 2>/dev/null`)
    expect(firstCall(root, output)).toContain('"name": "general"')
    const seconds = Math.round((performance.now() - begin) / 1000)
    process.stdout.write(`From the empty root to the first answered call: ${seconds} s\n`)

    const before = written(root)
    expect(succeeds(root, 'svc-server setup --yes')).toContain('Everything is done already')
    expect(written(root)).toBe(before)
    expect(before).toContain('/etc/svc/platform-identity-pepper root:svc 640')
    const doctor = `${SETTINGS}; exec runuser -u svc -- svc-server doctor`
    expect(succeeds(root, doctor)).toContain(', 0 failed.')
    // A user without rights reads no secret, and reaches the database under no other name.
    expect(root.run('runuser -u nobody -- cat /etc/svc/platform-identity-pepper').status).not.toBe(
      0,
    )
    expect(root.run('runuser -u nobody -- psql -U svc -d svc -c "select 1"').stderr).toContain(
      'Peer authentication failed',
    )
  },
  DEADLINE_MS,
)

test.skipIf(missing !== null)(
  `systemd starts, confines, stops and removes the service that the setup writes${where}`,
  async () => {
    const root = await booted('systemd', SYSTEMD, 'systemd systemd-sysv dbus')
    succeeds(root, 'until systemctl list-units >/dev/null 2>&1; do sleep 0.2; done')
    const output = succeeds(root, INSTALL)
    expect(output).toContain('The server runs.')
    expect(firstCall(root, output)).toContain('"name": "general"')
    expect(succeeds(root, 'svc doctor --root my-app')).toContain(', 0 failed.')

    // What the kernel says about the process, which runs Functions with the sandbox required.
    const main = 'MAIN=$(systemctl show --property=MainPID --value svc-server)'
    const status = succeeds(root, `${main}; cat /proc/$MAIN/status`)
    expect(status).toMatch(/^CapBnd:\t0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(status).toMatch(/^Seccomp:\t2$/m)
    expect(status).toMatch(/^Uid:\t(?!0\t)/m)
    for (const path of ['/etc/x', '/usr/x', '/home/x', '/var/lib/x', '/root/x']) {
      const touch = root.run(`${main}; nsenter --target $MAIN --mount touch ${path}`)
      expect([path, touch.stderr]).toEqual([path, expect.stringContaining('Read-only file system')])
    }
    expect(root.run('systemd-analyze security --threshold=20 svc-server').status).toBe(0)

    const before = written(root)
    expect(succeeds(root, 'svc-server setup --yes')).toContain('Everything is done already')
    expect(written(root)).toBe(before)
    const refused = root.run('SVC_BASE_URL=file:///mirror sh /mirror/install.sh --uninstall')
    expect(refused.stderr).toContain('Remove the service first')

    // The removal keeps what the service stored, and the next setup continues with it.
    succeeds(
      root,
      `svc-server setup --uninstall --yes; ! systemctl cat svc-server; test ! -e ${UNIT}`,
    )
    expect(succeeds(root, 'svc-server setup --yes')).toContain('The first owner has logged in.')
    expect(succeeds(root, CALL('channels.list', '{}'))).toContain('"name": "general"')

    // A wrong setting ends the service, and systemd does not try again.
    root.run('echo SERVICE_STATE_DIRECTORY=/ >>/etc/svc/environment; systemctl restart svc-server')
    succeeds(root, 'until systemctl is-failed svc-server; do sleep 0.2; done')
    const show = 'systemctl show --property=ExecMainStatus,NRestarts svc-server'
    expect(succeeds(root, show).split('\n').sort()).toEqual([
      '',
      'ExecMainStatus=78',
      'NRestarts=0',
    ])
  },
  DEADLINE_MS,
)

test.skipIf(missing !== null)(
  `a Debian with an older PostgreSQL is left as it is, with the reason${where}`,
  async () => {
    const directory = join(work, 'bookworm')
    createRoot(directory, 'bookworm')
    const root = await bootedAt(directory, PLAIN)
    // The root cannot reach the packages of the PostgreSQL project, even if this machine can.
    root.write('etc/hosts', '127.0.0.1 localhost\n127.0.0.1 apt.postgresql.org\n')
    for (let attempt = 0; attempt < 2; attempt++) {
      const failed = root.run(attempt === 0 ? INSTALL : 'svc-server setup --yes')
      expect(failed.status).toBe(1)
      expect(failed.stderr).toMatch(/The step ".*" failed: .*(?:exit code 100|apt\.postgresql)/)
      expect(failed.stderr).toContain('must reach https://apt.postgresql.org')
      expect(failed.stderr).toContain('SERVER_SETUP_FAILED')
    }
    expect(root.run('id svc; ls /etc/svc /var/lib/svc').status).not.toBe(0)

    succeeds(
      root,
      'rm /etc/apt/sources.list.d/pgdg.*; apt-get update; apt-get install -y postgresql',
    )
    const refused = root.run('svc-server setup --yes')
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/PostgreSQL 15 \(main\).*pg_upgradecluster.*--database-url-file/),
    ])
    expect(root.run('id svc').status).not.toBe(0)
  },
  DEADLINE_MS,
)
