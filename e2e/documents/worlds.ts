/** The machine on which the commands of documents run: programs, a server, and a home. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { argv } from '../argv.ts'
import {
  CLIENT,
  createInstallation,
  type Environment,
  type Installation,
  productEnvironment,
  run,
  SERVER,
} from '../harness.ts'
import type { World } from './reader.ts'
import { Terminal } from './terminal.ts'
import { WORKSPACE } from './workspace.ts'

export interface Machine {
  readonly installation: Installation
  /** Origins of the listeners, which stay the same when the server starts again. */
  readonly management: string
  readonly application: string
  /** Opens a terminal in the root, with a home and a session of an owner of its own. */
  open(): Promise<World>
  dispose(): Promise<void>
}

/**
 * Makes a machine with a server that serves the Workspace at `directory/workspace` from the root
 * `directory/product`. `more` adds places that stand in samples.
 */
export async function serverMachine(
  settings: Environment = {},
  more: Readonly<Record<string, string>> = {},
): Promise<Machine> {
  const installation = await createInstallation()
  const within = (name: string): string => join(installation.directory, name)
  const { productRoot, workspace, clientEnvironment } = installation
  const svc = async (args: readonly string[], environment: Environment = {}) => {
    const result = await run(argv`${CLIENT} ${args}`, {
      directory: within('run'),
      environment: { ...clientEnvironment, ...environment },
    })
    if (result.status === 0) return
    throw new Error(`svc ${args.join(' ')}: ${result.status}\n${result.stdout}${result.stderr}`)
  }
  await svc(argv`init --root ${productRoot} --workspace ${workspace} --name chat`)
  for (const [path, text] of Object.entries(WORKSPACE)) writeFileSync(join(workspace, path), text)
  const environment = { ...productEnvironment(installation), ...settings }
  let server: ServerProcess | null = await installation.start(environment)
  const origins = { management: server.management, application: server.application! }
  const code = readFileSync(installation.codeFile, 'utf8').trim()
  await svc(argv`login --url ${origins.management} --code-env CODE`, { CODE: code })
  const { projectId, environmentId } = JSON.parse(
    readFileSync(join(productRoot, 'service.json'), 'utf8'),
  )
  await svc(
    argv`link --root ${productRoot} --project-id ${projectId} --environment-id ${environmentId}`,
  )
  await svc(argv`release --root ${productRoot} --channel production --no-typecheck`)
  const control = await serviceManager(async (verb) => {
    if (verb !== 'start') {
      await server?.stop()
      server = null
    }
    if (verb !== 'stop') server ??= await installation.start(environment)
  })
  const tools = toolsIn(within('tools'), {
    systemctl: `exec curl -fsS -X POST "${control.origin}/$1"`,
    'xdg-open': '',
  })
  const terminals: Terminal[] = []
  const places = {
    'https://manage.example.com:3220': origins.management,
    'https://manage.example.com': origins.management,
    'http://127.0.0.1:3220': origins.management,
    'https://app.example.com': origins.application,
    'https://dev.example.com': origins.application,
    'http://127.0.0.1:3210': origins.application,
    'prj_...': projectId,
    'env_...': environmentId,
    ...more,
  }
  return {
    installation,
    ...origins,
    open: async () => {
      const name = `reader-${terminals.length + 1}`
      const home = within(name)
      mkdirSync(home)
      const code = join(home, 'code')
      const operator = argv`--role owner --scope installation --operator-name ${name}`
      await svc(argv`invite ${operator} --code-out ${code}`)
      const own = { SERVICE_CONFIG_HOME: join(home, 'config') }
      const CODE = readFileSync(code, 'utf8').trim()
      await svc(argv`login --url ${origins.management} --code-env CODE`, { ...own, CODE })
      const terminal = new Terminal({
        directory: productRoot,
        files: home,
        environment: {
          ...installation.environment,
          ...environment,
          ...clientEnvironment,
          ...own,
          HOME: home,
          PATH: `${tools}:${NODE_PATH}:${process.env.PATH}`,
        },
      })
      terminals.push(terminal)
      return { terminal, directory: productRoot, places }
    },
    dispose: async () => {
      for (const each of terminals) each.close()
      control.close()
      await installation.dispose()
    },
  }
}

/** Makes a directory of programs: those of this project, and scripts by name. */
export function toolsIn(directory: string, scripts: Readonly<Record<string, string>>): string {
  mkdirSync(directory)
  symlinkSync(SERVER, join(directory, 'svc-server'))
  symlinkSync(CLIENT, join(directory, 'svc'))
  for (const [name, body] of Object.entries(scripts)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${body}\n`)
    chmodSync(join(directory, name), 0o755)
  }
  return directory
}

/** Does what systemctl asks the service manager of a machine for. */
async function serviceManager(act: (verb: string) => Promise<void>) {
  const server: Server = createServer((request, response) => {
    act(request.url!.slice(1)).then(
      () => response.end(),
      (error) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close() }
}
