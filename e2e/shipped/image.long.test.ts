/**
 * Goal: the image of svc-server is read and run by the programs of others. Method: the image is
 * made from the executable under test; skopeo reads and converts it; podman runs it with a root
 * file system that can only be read, without capabilities, as the user of the image, and operators
 * and callers reach it over TLS.
 */
import { spawnSync } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { baseLayer, programLayer, USER } from '../../build/image/files.ts'
import { createImage, type Image, imageArchive } from '../../build/image/image.ts'
import { LIBRARY_PACKAGES } from '../../build/image/libc.ts'
import { selfSigned } from '../../testing/certificates.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { argv } from '../argv.ts'
import { createInstallation, type Environment, SERVER } from '../harness.ts'

const DEADLINE_MS = 600_000
const SHIPPED = join(import.meta.dirname, '../../dist-config')
const RELEASE = { version: '0.0.1', commit: 'abcdef01', time: 1_700_000_000 }
const REFERENCE = `svc-server:${RELEASE.version}`
const FUNCTIONS = `import { query, v } from 'svc'
export const hello = query({
  clients: ['confidential'], returns: v.string(), handler: () => 'hello from a container',
})
`

/** The reason why images cannot be made or read here; null if they can. */
function missingTool(...tools: readonly string[]): string | null {
  if (process.platform !== 'linux') return 'images are made on Linux'
  const missing = tools.filter((name) => spawnSync('which', [name]).status !== 0)
  return missing.length === 0 ? null : `${missing.join(' and ')} not installed`
}

function run(command: readonly string[], environment: Environment = {}) {
  const [file = '', ...args] = command
  const env = { PATH: process.env.PATH, HOME: work, ...environment }
  return spawnSync(file, args, { encoding: 'utf8', env, cwd: '/', maxBuffer: 64 << 20 })
}

function succeed(command: readonly string[], environment: Environment = {}): string {
  const { status, stdout, stderr } = run(command, environment)
  expect(status, `${command.join(' ')}\n${stdout}${stderr}`).toBe(0)
  return stdout
}

let work = ''
let archive = ''
let image: Image
const noImage = missingTool('skopeo', 'apt-get', 'dpkg-deb')

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-image-'))
  if (noImage !== null) return
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const layers = [baseLayer(LIBRARY_PACKAGES[architecture]), programLayer(SERVER)]
  image = createImage(architecture, layers, RELEASE)
  archive = join(work, 'image.tar')
  writeFileSync(archive, imageArchive(image, RELEASE))
}, DEADLINE_MS)

afterAll(() => rmSync(work, { recursive: true }))

describe.skipIf(noImage !== null)(`skopeo reads the image (${noImage ?? 'installed'})`, () => {
  test('the archive is one of OCI and one of docker', () => {
    const policy = ['skopeo', '--insecure-policy']
    for (const transport of ['oci-archive', 'docker-archive']) {
      const seen = JSON.parse(succeed([...policy, 'inspect', `${transport}:${archive}`]))
      expect(seen.Os).toBe('linux')
      expect(seen.Layers.length).toBe(2)
      expect(seen.Labels['org.opencontainers.image.version']).toBe(RELEASE.version)
      expect(seen.Labels['org.opencontainers.image.revision']).toBe(RELEASE.commit)
      const { config } = JSON.parse(
        succeed([...policy, 'inspect', '--config', `${transport}:${archive}`]),
      )
      expect(config.User).toBe(`${USER}:${USER}`)
      expect(config.StopSignal).toBe('SIGTERM')
      expect(Object.keys(config.Volumes)).toEqual(['/var/lib/svc'])
      expect(Object.keys(config.ExposedPorts)).toEqual(['3210/tcp', '3220/tcp'])
    }
  })

  test('copies for docker and into a directory have the same layers', () => {
    const copy = (to: string) =>
      succeed(['skopeo', '--insecure-policy', 'copy', '-q', `oci-archive:${archive}`, to])
    const folder = join(work, 'copied')
    copy(`dir:${folder}`)
    const digests = image.layers.map(({ digest }) => digest.replace('sha256:', ''))
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(digests))
    copy(`docker-archive:${join(work, 'docker.tar')}:${REFERENCE}`)
    const config = succeed(['tar', '-xOf', join(work, 'docker.tar'), 'manifest.json'])
    expect(JSON.parse(config)[0].Config).toBe(`${image.config.digest.slice(7)}.json`)
  })
})

const noCompose = missingTool('docker-compose')

test.skipIf(noCompose !== null)(
  `docker-compose accepts compose.yaml (${noCompose ?? 'installed'})`,
  () => {
    const folder = mkdtempSync(join(work, 'compose-'))
    copyFileSync(join(SHIPPED, 'compose.yaml'), join(folder, 'compose.yaml'))
    const config = ['docker-compose', '-f', join(folder, 'compose.yaml'), 'config']
    const without = run(config)
    expect(without.status).not.toBe(0)
    expect(without.stderr).toContain('SVC_VERSION')
    const resolved = succeed(config, {
      SVC_VERSION: RELEASE.version,
      SVC_PUBLIC_URL: 'https://manage.example.com:3220',
      SVC_BACKUP_RECIPIENTS: 'age1example',
    })
    expect(resolved).toContain(`image: ${REFERENCE}`)
  },
)

const noPodman =
  noImage ??
  missingTool('podman', 'runc') ??
  (process.getuid?.() === 0 ? null : 'containers are run as root here')

/** Options of `podman run` that stand for those of compose.yaml. */
const CONFINED = [
  ...argv`--read-only --read-only-tmpfs=false --tmpfs /tmp:noexec,nosuid,nodev`,
  ...argv`--cap-drop ALL --security-opt no-new-privileges --network host`,
  // A limit above that of this process would need more rights than it may have.
  ...argv`--ulimit nofile=4096:4096 --ulimit nproc=4096:4096 --log-driver k8s-file`,
]

describe.skipIf(noPodman !== null)(`podman runs the image (${noPodman ?? 'installed'})`, () => {
  test(
    'a confined container serves operators and callers, and contains Functions',
    async () => {
      const storage = argv`--root ${join(work, 'storage')} --runroot ${join(work, 'run')}`
      const podman = [
        'podman',
        ...storage,
        ...argv`--runtime /usr/sbin/runc --cgroup-manager cgroupfs`,
      ]
      onTestFinished(() => {
        for (const end of [argv`rm -af -t 0`, argv`volume rm -af`, argv`rmi -af`]) {
          run([...podman, ...end])
        }
      }, DEADLINE_MS)
      succeed([...podman, 'load', '-q', '-i', archive])

      const installation = await createInstallation()
      onTestFinished(() => installation.dispose(), DEADLINE_MS)
      const secrets = join(work, 'secrets')
      mkdirSync(secrets)
      const given = (name: string, content: string | Uint8Array): string => {
        writeFileSync(join(secrets, name), content, { mode: 0o400 })
        chownSync(join(secrets, name), USER, USER)
        return `/run/secrets/${name}`
      }
      const { certificate, key: privateKey } = selfSigned('localhost')
      const source = (name: string) => readFileSync(join(installation.directory, name))
      const [management, application] = [await freePort(), await freePort()]
      const url = `https://localhost:${management}`
      const settings = Object.entries({
        SERVICE_IDENTITY_DATABASE_URL_FILE: given('database-url', source('database-url')),
        SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: given('pepper', source('pepper')),
        SERVICE_PRODUCT_ROOT: '/var/lib/svc/product',
        SERVICE_MANAGEMENT_LISTEN: `0.0.0.0:${management}`,
        SERVICE_APPLICATION_LISTEN: `0.0.0.0:${application}`,
        SERVICE_PUBLIC_MANAGEMENT_URL: url,
        SERVICE_TLS_CERTIFICATE_FILE: given('fullchain.pem', certificate),
        SERVICE_TLS_KEY_FILE: given('privkey.pem', privateKey),
        SERVICE_RUNNER_SANDBOX: 'required',
      }).flatMap(([name, value]) => ['--env', `${name}=${value}`])
      const volumes = argv`-v state:/var/lib/svc -v ${secrets}:/run/secrets:ro`
      const container = (...options: readonly string[]) => [
        ...podman,
        'run',
        ...CONFINED,
        ...volumes,
        ...settings,
        ...options,
      ]

      const init = argv`init --root /var/lib/svc/product --workspace /tmp/app --name Shop`
      succeed([...container('--rm', '--entrypoint', 'svc', REFERENCE), ...init])
      succeed([...container('--rm', REFERENCE), 'check'])
      succeed(container('-d', '--name', 'server', REFERENCE))
      const inside = (mode: readonly string[]) => run([...podman, 'exec', 'server', ...mode])
      const log = () => run([...podman, 'logs', 'server'])
      await expect
        .poll(() => inside(argv`svc-server ready`).status, { timeout: DEADLINE_MS, interval: 250 })
        .toBe(0)
        .catch((error) => {
          throw new Error(`${error}\n${log().stderr}`)
        })

      const mountpoint = succeed([
        ...podman,
        ...argv`volume inspect -f {{.Mountpoint}} state`,
      ]).trim()
      const svc = async (args: readonly string[], extra: Environment = {}) => {
        const trust = { NODE_EXTRA_CA_CERTS: join(secrets, 'fullchain.pem'), ...extra }
        const result = await installation.svc(argv`${args} --json`, trust)
        expect(result.status, `svc ${args.join(' ')}\n${result.stdout}${result.stderr}`).toBe(0)
        return JSON.parse(result.stdout)
      }
      const code = readFileSync(join(mountpoint, 'state/bootstrap/initial-owner.code'), 'utf8')
      await svc(argv`login --url ${url} --code-env CODE`, { CODE: code.trim() })
      const { environmentId } = JSON.parse(
        readFileSync(join(mountpoint, 'product/service.json'), 'utf8'),
      )
      const root = argv`--root ${join(work, 'linked')}`
      mkdirSync(join(work, 'linked'))
      const { workspace } = installation
      await svc(argv`init --root ${join(work, 'unused')} --workspace ${workspace} --name Shop`)
      writeFileSync(join(workspace, 'functions/greeting.ts'), FUNCTIONS)
      await svc(argv`link ${root} --environment-id ${environmentId}`)
      const sources = argv`--workspace ${workspace} --channel production --no-typecheck`
      await svc(argv`release ${root} ${sources}`)
      const { client } = await svc(
        argv`clients create ${root} --name caller --kind confidential --scopes query`,
      )
      const { key } = await svc(
        argv`credentials create ${root} --name caller --client ${client.clientId}`,
      )
      const response = await fetch(`https://localhost:${application}/v1/functions/greeting.hello`, {
        headers: { 'x-service-key': key, 'x-service-target': 'channel:production' },
        tls: { ca: certificate },
      } as RequestInit)
      expect(await response.json()).toMatchObject({ result: 'hello from a container' })

      const doctor = JSON.parse(inside(argv`svc-server doctor --json`).stdout)
      const sandbox = doctor.checks.find(({ name }: { name: string }) => name === 'sandbox')
      expect(sandbox.status, JSON.stringify(sandbox)).toBe('ok')
      // The user of the image, no capability, no new privileges, and the default filter of podman.
      const [pid] = succeed([...podman, ...argv`inspect -f {{.State.Pid}} server`]).split('\n')
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      expect(status).toMatch(new RegExp(`^Uid:\t${USER}\t${USER}\t${USER}\t${USER}$`, 'm'))
      for (const line of ['CapBnd:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2']) {
        expect(status).toContain(`${line}\n`)
      }
      expect(run([...podman, ...argv`stop -t 60 server`]).status).toBe(0)
      const exit = succeed([...podman, ...argv`inspect -f {{.State.ExitCode}} server`])
      expect(exit.trim(), log().stderr.slice(-2000)).toBe('0')
    },
    DEADLINE_MS,
  )
})
