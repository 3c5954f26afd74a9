/**
 * Goal: compose.yaml and its document take an empty directory to a server that answers, and data
 * survives a restart and `down`. Method: the samples of the document are run as they are, with the
 * image of the executable under test, a PostgreSQL 18 like that of the official image, and docker
 * compose that speaks to podman. An override changes what other programs on this machine would
 * collide with: ports, and a limit above that of this process.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest'
import { ROOT } from '../../build/bundle.ts'
import { baseLayer, programLayer } from '../../build/image/files.ts'
import { createImage, imageArchive } from '../../build/image/image.ts'
import { LIBRARY_PACKAGES } from '../../build/image/libc.ts'
import { readSamples } from '../../build/samples/blocks.ts'
import { selfSigned } from '../../testing/certificates.ts'
import { Podman } from '../../testing/containers/podman.ts'
import { postgresImage } from '../../testing/containers/postgres-image.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { CLIENT, SERVER } from '../harness.ts'

const DEADLINE_MS = 30 * 60_000
const DOCUMENT = 'src/docs/containers.md#docker-compose'
const VERSION = '0.5.0'
const RELEASE = { version: VERSION, commit: 'abcdef01', time: 1_700_000_000 }
/** Longer than a health check takes to be asked: the database of the first start is not ready. */
const FIRST_START_SECONDS = 6

function missing(): string | null {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'needs root on Linux'
  const programs = ['podman', 'runc', 'docker-compose', 'debootstrap', 'apt-get', 'dpkg-deb']
  const absent = programs.filter((name) => spawnSync('which', [name]).status !== 0)
  if (absent.length > 0) return `${absent.join(' and ')} not installed`
  const { stdout } = spawnSync('docker-compose', ['version', '--short'], { encoding: 'utf8' })
  return /^v?(?:[2-9]|\d\d)\./.test(stdout) ? null : 'docker compose 2 is needed'
}

const reason = missing()
let work = ''
let site = ''
let podman: Podman
let ports = { management: 0, application: 0 }

beforeAll(async () => {
  if (reason !== null) return
  work = mkdtempSync('/var/tmp/svc-compose-')
  podman = await Podman.start(work)
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const layers = [baseLayer(LIBRARY_PACKAGES[architecture]), programLayer(SERVER)]
  const archive = join(work, 'image.tar')
  writeFileSync(archive, imageArchive(createImage(architecture, layers, RELEASE), RELEASE))
  podman.succeed('load', '-q', '-i', archive)
  const postgres = postgresImage(work)
  const name = 'docker.io/library/postgres:18'
  podman.succeed('import', ...postgres.arguments, postgres.archive, name)
  ports = { management: await freePort(), application: await freePort() }
  site = join(work, 'site')
  mkdirSync(site)
  copyFileSync(join(ROOT, 'dist-config/compose.yaml'), join(site, 'compose.yaml'))
  writeFileSync(join(site, 'compose.override.yaml'), override())
  writePrograms()
}, DEADLINE_MS)

afterAll(() => {
  if (reason !== null) return
  podman.stop()
  rmSync(work, { recursive: true, force: true })
}, DEADLINE_MS)

function override(): string {
  const published = [`${ports.application}:3210`, `${ports.management}:3220`]
  return [
    'services:',
    '  svc-server:',
    `    ports: !override ${JSON.stringify(published)}`,
    '    ulimits: !override { nofile: 4096, nproc: 4096 }',
    '  postgres:',
    `    environment: { POSTGRES_FIRST_START_DELAY: "${FIRST_START_SECONDS}" }`,
    '',
  ].join('\n')
}

/** Puts the programs that the document names on the search path of its samples. */
function writePrograms(): void {
  const folder = join(work, 'bin')
  mkdirSync(folder)
  const program = (name: string, line: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  program('docker', 'test "$1" = compose && shift && exec docker-compose "$@"')
  program('sudo', 'exec "$@"')
  symlinkSync(CLIENT, join(folder, 'svc'))
  const { certificate, key } = selfSigned('localhost')
  mkdirSync(join(work, 'certificate'))
  writeFileSync(join(work, 'certificate/fullchain.pem'), certificate)
  writeFileSync(join(work, 'certificate/privkey.pem'), key)
}

const url = (port: number): string => `https://localhost:${port}`

/** Runs a script in the directory of the compose file, which must succeed; returns its output. */
async function sh(script: string, environment: Readonly<Record<string, string>> = {}) {
  const child = spawn('sh', ['-euc', script], {
    cwd: site,
    env: {
      PATH: `${join(work, 'bin')}:${process.env.PATH}`,
      HOME: work,
      DOCKER_HOST: podman.address,
      SERVICE_CONFIG_HOME: join(work, 'config'),
      NODE_EXTRA_CA_CERTS: join(work, 'certificate/fullchain.pem'),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const status = await new Promise((resolve) => child.once('close', resolve))
  expect(status, `${script}\n${stdout}\n${stderr}`).toBe(0)
  return stdout
}

/** Returns a sample of the document, with the values of this test in place of the examples. */
function sample(number: number): string {
  const found = readSamples(ROOT).find(({ place }) => place === `${DOCUMENT} ${number}`)
  return found!.text
    .replaceAll('https://manage.example.com:3220', url(ports.management))
    .replaceAll('/path/to', join(work, 'certificate'))
}

/** Writes `.env` as the document shows it, with the recipient of the key that was made. */
function writeVariables(): void {
  const [recipient] = /age1[0-9a-z]+/.exec(readFileSync(join(site, 'backup.key'), 'utf8'))!
  const text = sample(2).replace('age1...', recipient)
  expect(text).toContain(`SVC_VERSION=${VERSION}\n`)
  expect(text).toContain(recipient)
  writeFileSync(join(site, '.env'), `${text}\n`)
}

const channels = (): Promise<string> => call('channels.list', '{}')

function call(name: string, args: string): Promise<string> {
  const where = `--root . --url ${url(ports.application)} --key-env KEY`
  return sh(`KEY="$(cat web.key)" svc call ${name} '${args}' ${where} --target channel:production`)
}

test.skipIf(reason !== null)(
  `docker compose starts, restarts and keeps a server as the document says (${reason ?? 'podman'})`,
  async () => {
    onTestFailed(() => {
      const names = podman.succeed('ps', '-a', '--format', '{{.Names}}').trim().split('\n')
      const logs = names.map((name) => `${name}\n${podman.run('logs', '--tail=20', name).stderr}`)
      process.stderr.write(`${podman.run('ps', '-a').stdout}${logs.join('\n')}\n`)
    })
    const begin = performance.now()
    await sh(sample(1))
    writeVariables()
    const [init = '', ...rest] = sample(3).split('\ndocker compose run --rm svc-server check\n')
    await sh(init)
    // A container that waited for the health of PostgreSQL reaches it over the network.
    await sh('docker compose exec -T postgres pg_isready --host=postgres --quiet')
    const checked = await sh('docker compose run --rm svc-server check')
    expect(checked).toContain('Function sandbox       required')
    expect(checked).toMatch(/^ {2}Environment {12}shop /m)
    await sh(rest.join('\n'))
    expect(await sh(sample(4))).toContain('serves production.')
    await sh(`CLIENT=$(svc clients create --root . --name web --kind public --json |
      grep -o 'app_[0-9A-Z]*' | head -n 1)
      svc credentials create --root . --client "$CLIENT" --name first --key-out web.key`)
    await call('channels.create', '{"name":"general","author":"me"}')
    expect(await channels()).toContain('"name": "general"')
    const seconds = Math.round((performance.now() - begin) / 1000)
    process.stdout.write(`From the empty directory to the first answered call: ${seconds} s\n`)
    // No server started before PostgreSQL could answer it.
    expect(podman.succeed('inspect', '-f', '{{.RestartCount}}', 'site-svc-server-1')).toBe('0\n')

    const doctor = await sh('docker compose exec -T svc-server svc-server doctor || true')
    expect(doctor).toMatch(/^ok +sandbox +/m)
    expect(doctor).toMatch(/^ok +backup-target +/m)
    expect(doctor).toContain(', 0 failed.')
    expect(await sh('svc backup create --root .')).toContain('is complete')
    expect(readdirSync(join(site, 'backups'))).toEqual([expect.stringMatching(/^env_/)])
    expect(await sh('svc backup verify backups --identity backup.key')).toContain(
      'The backup is whole',
    )

    await sh('docker compose restart && docker compose up -d --wait')
    expect(await channels()).toContain('"name": "general"')
    await sh('docker compose down')
    expect(podman.succeed('ps', '-aq')).toBe('')
    await sh('docker compose up -d --wait')
    expect(await channels()).toContain('"name": "general"')
    const exits = podman.run('logs', 'site-svc-server-1').stderr
    expect(exits).not.toContain('"level":"error"')
  },
  DEADLINE_MS,
)
