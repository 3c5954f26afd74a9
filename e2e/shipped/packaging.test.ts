/**
 * Goal: what ships beside the executable works as it is. Method: the real programs load the
 * environment template, the systemd unit and the configurations of both proxies; svc logs in,
 * publishes and calls through TLS, with certificates of this run. Only paths, ports and the names
 * of files are put in their place.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ForwardProxy } from '../../testing/servers/forward-proxy.ts'
import { freePort } from '../../testing/servers/ports.ts'
import {
  APPLICATION_HOST,
  CADDY,
  MANAGEMENT_HOST,
  NGINX,
  type ProxyKind,
  type RunningProxy,
} from '../../testing/servers/proxies.ts'
import { type ServerProcess, startServer } from '../../testing/servers/server-process.ts'
import type { Json } from '../application.ts'
import { argv } from '../argv.ts'
import {
  CLIENT,
  createInstallation,
  type Environment,
  type Installation,
  run,
  runSync,
  SERVER,
} from '../harness.ts'
import { createPackage } from './packages.ts'

const SHIPPED = join(import.meta.dirname, '../../dist-config')
const MEBIBYTE = 1024 * 1024
const URLS = {
  management: `https://${MANAGEMENT_HOST}`,
  application: `https://${APPLICATION_HOST}`,
}
const SYSTEMD_ANALYZE = '/usr/bin/systemd-analyze'

interface Service {
  readonly installation: Installation
  readonly productRoot: string
  readonly environment: Environment
  start(): Promise<ServerProcess>
}

/** A server with the settings of the template, in directories of its own. */
async function service(): Promise<Service> {
  const installation = await createInstallation()
  const root = join(installation.directory, 'root')
  const environment = await templateSettings(root)
  for (const name of ['IDENTITY_DATABASE_URL_FILE', 'PLATFORM_IDENTITY_PEPPER_FILE']) {
    const path = environment[`SERVICE_${name}`]!
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, readFileSync(installation.environment[`SERVICE_${name}`]!), { mode: 0o600 })
  }
  mkdirSync(environment.SERVICE_STATE_DIRECTORY!, { recursive: true, mode: 0o700 })
  const running: ServerProcess[] = []
  onTestFinished(async () => {
    for (const server of running) server.kill()
    await Promise.all(running.map((server) => server.ended))
    await installation.dispose()
  })
  const start = async () => {
    const server = await startServer({ executable: SERVER, environment, directory: '/' })
    running.push(server)
    return server
  }
  return { installation, productRoot: environment.SERVICE_PRODUCT_ROOT!, environment, start }
}

/** The settings of the template and of its examples for one Product, at free ports. */
async function templateSettings(root: string): Promise<Record<string, string>> {
  const examples = /^# (SERVICE_(?:PRODUCT_ROOT|APPLICATION_\w+|\w*MANAGEMENT_(?:LISTEN|URL))=)/gm
  const text = readFileSync(join(SHIPPED, 'environment.template'), 'utf8').replace(examples, '$1')
  const settings: Record<string, string> = {}
  for (const [, name, value] of text.matchAll(/^([A-Z_]+)=(.*)$/gm)) {
    const port = /^127\.0\.0\.1:\d+$/.test(value!) ? await freePort() : null
    settings[name!] = port === null ? value!.replace(/^\//, `${root}/`) : `127.0.0.1:${port}`
  }
  return settings
}

/** Starts the proxy, and gives svc the names of both origins and the authority of the proxy. */
async function throughTls(kind: ProxyKind, { installation, environment, productRoot }: Service) {
  const proxy: RunningProxy = await kind.start({
    management: environment.SERVICE_MANAGEMENT_LISTEN!,
    application: environment.SERVICE_APPLICATION_LISTEN!,
  })
  onTestFinished(() => proxy.stop())
  const hosts = [MANAGEMENT_HOST, APPLICATION_HOST]
  const tunnels = Object.fromEntries(hosts.map((host) => [`${host}:443`, proxy.port]))
  const names = await ForwardProxy.start({ tunnels })
  onTestFinished(() => names[Symbol.dispose]())
  const authority = join(installation.directory, 'authority.pem')
  writeFileSync(authority, proxy.authority)
  const variables = {
    SERVICE_CONFIG_HOME: installation.clientEnvironment.SERVICE_CONFIG_HOME!,
    HTTPS_PROXY: `http://127.0.0.1:${names.port}`,
    NODE_EXTRA_CA_CERTS: authority,
  }
  return async (args: readonly string[], extra: Environment = {}): Promise<Json> => {
    const root = args[0] === 'login' ? [] : argv`--root ${productRoot}`
    const command = argv`${CLIENT} ${args} ${root} --json`
    const result = await run(command, { environment: { ...variables, ...extra } })
    expect(result, args.join(' ')).toMatchObject({ status: 0 })
    return JSON.parse(result.stdout)
  }
}

describe.each([NGINX, CADDY])('the configuration of $name and the settings', (kind) => {
  const where = kind.installed ? 'that ship' : `that ship (${kind.executable} is missing)`

  test.skipIf(!kind.installed)(`svc works through TLS with the settings ${where}`, async () => {
    const served = await service()
    const made = runSync(argv`
      ${CLIENT} init --root ${served.productRoot}
      --workspace ${join(served.installation.directory, 'workspace')}
    `)
    expect(made.stderr).toBe('')
    const { environment } = served
    expect(runSync(argv`${SERVER} migrate`, { environment })).toMatchObject({ status: 0 })
    expect(runSync(argv`${SERVER} check`, { environment })).toMatchObject({ status: 0 })
    const server = await served.start()
    const svc = await throughTls(kind, served)

    const codeFile = 'bootstrap/initial-owner.code'
    const code = readFileSync(join(environment.SERVICE_STATE_DIRECTORY!, codeFile), 'utf8').trim()
    await svc(argv`login --url ${URLS.management} --code-env CODE`, { CODE: code })
    const described = readFileSync(join(served.productRoot, 'service.json'), 'utf8')
    const { projectId, environmentId } = JSON.parse(described)
    await svc(argv`link --project-id ${projectId} --environment-id ${environmentId}`)

    const frame = createPackage({ projectId, workspace: 'large', sourceBytes: 60 * MEBIBYTE })
    const file = join(served.installation.directory, 'large.svcpkg')
    writeFileSync(file, frame)
    const published = await svc(argv`publish --remote --package ${file}`)
    expect(published).toMatchObject({ workspace: 'large', replayed: false })

    await svc(argv`release --remote --channel production`)
    const { client } = await svc(argv`
      clients create --remote --name backend --kind confidential --scopes query
    `)
    const { key } = await svc(
      argv`credentials create --remote --client ${client.clientId} --name one --scopes query`,
    )
    const call = argv`
      call channels.list --remote --url ${URLS.application}
      --key-env KEY --target channel:production
    `
    expect((await svc(call, { KEY: key })).result).toEqual([])

    // The call begins while the server is stopped, and ends when it serves again.
    await server.stop()
    const [, again] = await Promise.all([served.start(), svc(call, { KEY: key })])
    expect(again.result).toEqual([])
  })
})

describe('the systemd unit', () => {
  const isInstalled = existsSync(SYSTEMD_ANALYZE)
  const where = isInstalled ? '' : ` (${SYSTEMD_ANALYZE} is missing)`

  /** Writes the unit with the executable of this build. */
  function unit(change: (text: string) => string = (text) => text): string {
    const directory = mkdtempSync(join(tmpdir(), 'svc-unit-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const path = join(directory, 'svc-server.service')
    const text = readFileSync(join(SHIPPED, 'svc-server.service'), 'utf8')
    writeFileSync(path, change(text.replaceAll('/usr/local/bin/svc-server', SERVER)))
    return path
  }

  function analyze(...args: readonly string[]) {
    return spawnSync(SYSTEMD_ANALYZE, args, { encoding: 'utf8' })
  }

  test.skipIf(!isInstalled)(`systemd loads the unit without a complaint${where}`, () => {
    const { status, stderr } = analyze('verify', '--man=no', '--recursive-errors=no', unit())
    expect([status, stderr]).toEqual([0, ''])
    const misspelt = unit((text) => text.replace('RestartSec', 'RestartSeconds'))
    const rejected = analyze('verify', '--man=no', '--recursive-errors=no', misspelt)
    expect(rejected.stderr).toContain("Unknown key 'RestartSeconds'")
  })

  test.skipIf(!isInstalled)(
    `the unit confines the server as far as systemd can judge${where}`,
    () => {
      // Exposure in tenths, from 0 to 100; 92 without any of the confinement.
      const { status, stdout } = analyze('security', '--offline=true', '--threshold=20', unit())
      expect([status, /Overall exposure level.*/.exec(stdout)?.[0]]).toEqual([
        0,
        expect.stringContaining('OK'),
      ])
    },
  )
})
