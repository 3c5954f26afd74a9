/** CI jobs as processes: each has a machine of its own, with nothing stored on it. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Platform, SHAPES } from '../../testing/providers/workload-issuers.ts'
import { type Application, type Json, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, type Environment, type Result, run } from '../harness.ts'

export interface Job {
  /** Working directory of the job, with a copy of the Workspace in `workspace`. */
  readonly directory: string
  /** Runs svc with `--json`. */
  svc(args: readonly string[], environment?: Environment): Promise<Result>
}

let jobs = 0

/** A fresh machine whose checkout differs from that of every other job. */
export function newJob({ installation }: Application): Job {
  const directory = join(installation.directory, `job-${++jobs}`)
  mkdirSync(directory)
  cpSync(installation.workspace, join(directory, 'workspace'), { recursive: true })
  writeFileSync(join(directory, 'workspace/functions/jobs.ts'), functionOf(jobs))
  return {
    directory,
    svc: (args, environment = {}) =>
      run(argv`${CLIENT} ${args} --json`, {
        directory,
        environment: {
          HOME: directory,
          CI: 'true',
          SVC_ALLOW_LOOPBACK_HTTP: 'true',
          ...environment,
        },
      }),
  }
}

function functionOf(job: number): string {
  return `import { query, v } from 'svc'
export const current = query({ clients: ['public'], returns: v.int64(), handler: () => ${job}n })
`
}

/** Parses the output of a command; throws its messages if it failed. */
export function parsed(args: readonly string[], { status, stdout, stderr }: Result): Json {
  if (status === 0) return JSON.parse(stdout)
  throw new Error(`svc ${args.join(' ')}: ${status}\n${stdout}${stderr}`)
}

/** Logs in, links, releases and promotes to the Channel of the platform. Returns the Release. */
export async function deploy(app: Application, token: string, channel: string): Promise<string> {
  const job = newJob(app)
  const svc = async (args: readonly string[], environment: Environment = {}): Promise<Json> =>
    parsed(args, await job.svc(args, environment))
  const login = argv`login --url ${app.server.management} --oidc-token-env OIDC`
  await svc(login, { OIDC: token })
  await svc(argv`link --root . --environment-id ${readEnvironmentId(app)}`)
  const { releaseId } = await svc(argv`release --remote --workspace workspace ${UNTYPED}`)
  const promoted = argv`promote --remote --channel ${channel} --release ${releaseId}`
  const bound = await svc(promoted)
  if (bound.releaseId !== releaseId) throw new Error('another Release was promoted')
  return releaseId
}

const environments = new WeakMap<Application, string>()

export function readEnvironmentId(app: Application): string {
  const found = environments.get(app)
  if (found === undefined) throw new Error('the Environment is not known yet')
  return found
}

/** Reads the Environment of the installation and invites each platform's workload to it. */
export async function inviteWorkloads(
  app: Application,
  platforms: readonly Platform[],
): Promise<void> {
  const { resources } = await app.svc(argv`resources`)
  environments.set(app, resources[0].environmentId)
  for (const platform of platforms) {
    const subject = SHAPES[platform].claims.sub
    await app.svc(argv`
      invite --workload ${platform} --subject ${subject} --role developer
      --root ${app.installation.productRoot}
    `)
  }
}
