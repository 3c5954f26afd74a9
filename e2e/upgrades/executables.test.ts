/**
 * Goal: `svc upgrade` replaces a server that runs, and puts it back if the new version does not
 * serve. Method: the executables of this build, those of a later version with the key of this test
 * inside, a release on a server of this machine, and a script in place of systemctl that starts and
 * stops the real process with the settings of its environment file.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { tarGzip } from '../../build/archives.ts'
import { VERSION } from '../../src/value/version.ts'
import { MinisignKey, writeRelease } from '../../testing/client/signed-releases.ts'
import { compileRelease } from '../../testing/servers/release-executables.ts'
import { argv } from '../argv.ts'
import { createInstallation, run, SERVER } from '../harness.ts'

const OLD = VERSION
const NEW = '99.0.0'
const TARGET = 'linux-x64'
const isHere = process.platform === 'linux' && process.arch === 'x64'

const key = new MinisignKey()
let later: Awaited<ReturnType<typeof compileRelease>> | null = null

beforeAll(async () => {
  if (isHere) later = await compileRelease(NEW, key.text)
})
afterAll(() => later?.dispose())

/** A machine with the older version installed, whose server runs. */
async function machine() {
  const installation = await createInstallation()
  onTestFinished(() => installation.dispose())
  const at = (name: string): string => join(installation.directory, name)
  for (const name of ['bin', 'tools', 'release']) mkdirSync(at(name))
  copyFileSync(SERVER, at('bin/svc-server'))
  chmodSync(at('bin/svc-server'), 0o755)
  linkSync(at('bin/svc-server'), at('bin/svc'))
  const settings = Object.entries(installation.environment).map(
    ([name, value]) => `${name}=${value}`,
  )
  writeFileSync(at('environment'), `${settings.join('\n')}\n`)
  writeFileSync(at('key.pub'), key.file)
  writeFileSync(at('tools/systemctl'), supervisor(installation.directory), { mode: 0o755 })
  writeFileSync(at('tools/journalctl'), `#!/bin/sh\ntail -n 5 ${at('log')}\n`, { mode: 0o755 })
  const tool = (...args: readonly string[]) => spawnSync(at('tools/systemctl'), args)
  tool('start')
  onTestFinished(() => void tool('stop'))
  const ready = () => spawnSync(at('bin/svc-server'), ['ready'], { env: installation.environment })
  await expect.poll(() => ready().status, { timeout: 120_000 }).toBe(0)
  const PATH = `${at('tools')}:/usr/bin:/bin`
  return {
    at,
    /** The version of the process that runs, which may be of a file that was replaced. */
    running: () => {
      const pid = readFileSync(at('pid'), 'utf8').trim()
      const asked = { argv0: 'svc-server', encoding: 'utf8' } as const
      return spawnSync(`/proc/${pid}/exe`, ['version'], asked).stdout
    },
    version: (name: string) => {
      const asked = { argv0: name.replace('.previous', ''), encoding: 'utf8' } as const
      return spawnSync(at(`bin/${name}`), ['version'], asked).stdout
    },
    upgrade: (args: readonly string[]) =>
      run([at('bin/svc'), ...argv`upgrade ${args}`], { environment: { PATH } }),
  }
}

/** A script in place of systemctl for one unit, whose process it starts, stops and asks about. */
function supervisor(directory: string): string {
  return `#!/bin/sh
cd ${directory}
alive() { [ -e pid ] && kill -0 "$(cat pid)" 2>/dev/null; }
stop() { if alive; then kill -TERM "$(cat pid)"; while alive; do sleep 0.1; done; fi; }
start() {
  set -a; . ./environment; set +a
  setsid ./bin/svc-server serve >>log 2>&1 </dev/null & echo $! >pid
}
case "$1" in
  show)
    echo LoadState=loaded
    echo "ExecStart={ path=${directory}/bin/svc-server ; argv[]=x serve ; ignore_errors=no }"
    echo "User=$(id -un)"
    echo 'EnvironmentFiles=${directory}/environment (ignore_errors=no)' ;;
  is-active) if alive; then echo active; else echo failed; fi ;;
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
esac
`
}

/** Serves a release of the newer version. Returns its address. */
async function serve(directory: string, executable: Uint8Array): Promise<string> {
  const archive = tarGzip([
    { path: 'svc-server', bytes: executable, executable: true },
    { path: 'LICENSE', bytes: Buffer.from('text'), executable: false },
  ])
  writeRelease(directory, { version: NEW, executable: '', key, archive })
  const server = createServer((request, response) => {
    response.end(readFileSync(join(directory, request.url!)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.skipIf(!isHere)(
  `a server that runs is upgraded, and its executable has the key (skipped: not ${TARGET})`,
  async () => {
    const { at, running, version, upgrade } = await machine()
    expect(running()).toContain(`svc-server ${OLD}`)
    const from = await serve(at('release'), readFileSync(later!.server))
    const checked = await upgrade(
      argv`--from ${from} --public-key-file ${at('key.pub')} --check --json`,
    )
    expect(checked.stderr).toBe('')
    expect(JSON.parse(checked.stdout)).toMatchObject({
      outcome: 'checked',
      from: OLD,
      to: NEW,
      oneWay: false,
      service: { manager: 'systemd', name: 'svc-server.service' },
    })
    expect(running()).toContain(`svc-server ${OLD}`)
    const upgraded = await upgrade(argv`--from ${from} --public-key-file ${at('key.pub')}`)
    expect([upgraded.status, upgraded.stdout]).toEqual([
      0,
      expect.stringContaining('was restarted and is ready'),
    ])
    expect(running()).toContain(`svc-server ${NEW}`)
    expect([version('svc'), version('svc-server')]).toEqual([
      expect.stringContaining(NEW),
      expect.stringContaining(NEW),
    ])
    expect(version('svc-server.previous')).toContain(OLD)
    // The key in the new executable accepts the same release, and no signature of another key.
    expect((await upgrade(argv`--from ${from}`)).stdout).toContain(`${NEW} is installed`)
    writeFileSync(at('release/SHA256SUMS.minisig'), new MinisignKey().sign('', 'svc 9.9.9'))
    expect((await upgrade(argv`--from ${from}`)).stderr).toContain('CLIENT_UPGRADE_UNTRUSTED')
  },
  900_000,
)

test.skipIf(!isHere)(
  `a new version that does not serve is replaced by the previous one (skipped: not ${TARGET})`,
  async () => {
    const { at, running, version, upgrade } = await machine()
    const real = at('real/svc-server')
    mkdirSync(at('real'))
    copyFileSync(later!.server, real)
    chmodSync(real, 0o755)
    // It says that the upgrade is one way, so that the previous version has to be asked.
    const broken = `#!/bin/sh
if [ "$*" = 'upgrade --check --json' ]; then echo '{"backup":"root","seconds":0}'; exit 4; fi
if [ "$1" = upgrade ]; then exit 4; fi
if [ "$1" = serve ]; then echo 'the reason of the failure' >&2; exit 1; fi
exec ${real} "$@"
`
    const from = await serve(at('release'), Buffer.from(broken))
    const { status, stderr } = await upgrade(
      argv`--from ${from} --public-key-file ${at('key.pub')} --yes`,
    )
    expect([status, stderr]).toEqual([1, expect.stringContaining('CLIENT_UPGRADE_ROLLED_BACK')])
    expect(stderr).toContain('the reason of the failure')
    expect(running()).toContain(`svc-server ${OLD}`)
    expect([version('svc'), version('svc-server')]).toEqual([
      expect.stringContaining(OLD),
      expect.stringContaining(OLD),
    ])
  },
  900_000,
)
