/** Checks of shell samples that run nothing: syntax, programs, options, routes, settings. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  FILE_TRANSFERS,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  PLAIN_CALLS,
  PROBES,
} from '../../src/http/application/routes.ts'
import { sourceNames, VARIABLES } from '../../src/settings/variables.ts'
import { shellCommands } from '../../testing/markdown/shell-commands.ts'
import { ROOT } from '../bundle.ts'
import { reasonAgainst } from './programs.ts'

/** Words of the shell, and programs whose arguments say nothing about this project. */
const KNOWN = [
  'cat',
  'cd',
  'export',
  'until',
  'do',
  'done',
  '{',
  '}',
  'break',
  'kill',
  'sleep',
  'source',
]
/** Settings of the client. */
const CLIENT_SETTINGS = ['SERVICE_CONFIG_HOME', 'SERVICE_DEVELOPMENT_KEY']
const ROUTES = [...INVOCATIONS, ...PLAIN_CALLS, ...FILE_TRANSFERS, ...PROBES, FUNCTIONS_DOCUMENT]
const MANAGEMENT_PROBES = ['/health/ready']
const PROJECTS = ['.', 'src/sdk/templates/chat']

export interface ShellFindings {
  /** Mistakes in what the sample says. */
  readonly mistakes: readonly string[]
  /** Programs whose arguments are not checked. */
  readonly unchecked: readonly string[]
}

/** Checks a script. */
export function checkShell(script: string): ShellFindings {
  const mistakes: string[] = []
  const unchecked = new Set<string>()
  // `source` and its substitutions are words of bash.
  const shell = /^source /m.test(script) ? '/bin/bash' : '/bin/sh'
  const { status, stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' })
  if (status !== 0) mistakes.push(stderr.trim())
  for (const [program = '', ...words] of shellCommands(script.replaceAll('<(', '$('))) {
    const check = CHECKS[program]
    if (check !== undefined) {
      const reason = check(words)
      if (reason !== null) mistakes.push(`${program} ${words.join(' ')}: ${reason}`)
    } else if (!KNOWN.includes(program)) unchecked.add(program)
  }
  mistakes.push(...unknownSettings(script))
  return { mistakes, unchecked: [...unchecked] }
}

/** Names the settings that a text assigns and that no program reads. */
export function unknownSettings(text: string): string[] {
  const known = [...VARIABLES.flatMap(sourceNames), ...CLIENT_SETTINGS]
  const assigned = [...text.matchAll(/\b(SERVICE_[A-Z0-9_]+)(?==|:\s)/g)].map(([, name]) => name!)
  return assigned.filter((name) => !known.includes(name)).map((name) => `${name} is no setting`)
}

type Check = (words: readonly string[]) => string | null

const CHECKS: Readonly<Record<string, Check>> = {
  svc: (words) => reasonAgainst('svc', words),
  'svc-server': (words) => reasonAgainst('svc-server', words),
  curl: checkCurl,
  docker: checkDocker,
  npm: checkNpm,
  systemctl: checkUnit,
}

/** Addresses of samples at which another program answers. */
const OTHERS = /^https:\/\/(?:parse|releases)\.example\.com\//

/** The address is a route of the application listener, or a probe. */
function checkCurl(words: readonly string[]): string | null {
  const url = words.find((word) => /^https?:/.test(word))
  if (url === undefined) return 'it has no address'
  if (OTHERS.test(url)) return null
  const path = url.replace(/^https?:\/\/[^/$]+/, '')
  // A grant has its whole path.
  if (path === '$GRANT_PATH' || MANAGEMENT_PROBES.includes(path)) return null
  const isRoute = ROUTES.some((route) =>
    new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`).test(path),
  )
  return isRoute ? null : 'no such route'
}

/** The arguments after the service are those of its program, as compose.yaml has it. */
function checkDocker(words: readonly string[]): string | null {
  if (words[0] !== 'compose') return null
  const service = words.indexOf('svc-server')
  const entry = words.indexOf('--entrypoint')
  if ((words[1] !== 'run' && words[1] !== 'exec') || service === -1) return null
  const program = entry === -1 ? 'svc-server' : words[entry + 1]!
  const rest = words.slice(service + 1)
  return words[1] === 'exec' ? reasonAgainst(rest[0]!, rest.slice(1)) : reasonAgainst(program, rest)
}

/** The script is one of this project or of a Workspace. */
function checkNpm([verb = '', name = '']: readonly string[]): string | null {
  if (verb === 'install') return null
  const script = verb === 'run' ? name : verb
  const known = PROJECTS.flatMap((project) => {
    const about = JSON.parse(readFileSync(join(ROOT, project, 'package.json'), 'utf8'))
    return Object.keys(about.scripts)
  })
  return known.includes(script) ? null : 'no such script'
}

/** The unit is one of dist-config. */
function checkUnit([verb = '', unit = '']: readonly string[]): string | null {
  if (verb === 'daemon-reload') return null
  const isKnown = existsSync(join(ROOT, 'dist-config', `${unit}.service`))
  return isKnown && /^(?:start|stop|restart)$/.test(verb) ? null : 'no such unit or verb'
}
