/** The run of a pipeline, from the variables that its platform sets. */
import type { PipelineRun } from '../../value/packages/provenance.ts'

export interface Pipeline {
  readonly run: PipelineRun
  readonly commit: string | null
  /** Null for a tag. */
  readonly branch: string | null
}

type Variable = (name: string) => string | undefined

/**
 * Reads GitHub Actions (docs.github.com, Variables reference), GitLab (docs.gitlab.com, Predefined
 * CI/CD variables) and Buildkite (buildkite.com/docs, Environment variables). Returns null outside
 * of a pipeline of these.
 */
export function readPipeline(variable: Variable): Pipeline | null {
  const get = (name: string): string | null => variable(name) || null
  if (get('GITHUB_ACTIONS') === 'true') return github(get)
  if (get('GITLAB_CI') === 'true') return gitlab(get)
  if (get('BUILDKITE') === 'true') return buildkite(get)
  return null
}

type Get = (name: string) => string | null

function github(get: Get): Pipeline | null {
  const [id, server, repository] = ['RUN_ID', 'SERVER_URL', 'REPOSITORY'].map((name) =>
    get(`GITHUB_${name}`),
  )
  if (id == null) return null
  const attempt = get('GITHUB_RUN_ATTEMPT')
  const page = `${server}/${repository}/actions/runs/${id}`
  const url = server === null || repository === null ? null : page
  const branch = get('GITHUB_REF_TYPE') === 'branch' ? get('GITHUB_REF_NAME') : null
  return {
    run: {
      provider: 'github',
      id,
      url: url === null || attempt === null ? url : `${url}/attempts/${attempt}`,
    },
    commit: get('GITHUB_SHA'),
    // Of a pull request: its reference is a merge that no branch has.
    branch: get('GITHUB_HEAD_REF') ?? branch,
  }
}

function gitlab(get: Get): Pipeline | null {
  const id = get('CI_PIPELINE_ID')
  if (id === null) return null
  return {
    run: { provider: 'gitlab', id, url: get('CI_PIPELINE_URL') },
    commit: get('CI_COMMIT_SHA'),
    branch: get('CI_COMMIT_BRANCH') ?? get('CI_MERGE_REQUEST_SOURCE_BRANCH_NAME'),
  }
}

function buildkite(get: Get): Pipeline | null {
  const id = get('BUILDKITE_BUILD_NUMBER')
  if (id === null) return null
  return {
    run: { provider: 'buildkite', id, url: get('BUILDKITE_BUILD_URL') },
    commit: get('BUILDKITE_COMMIT'),
    branch: get('BUILDKITE_TAG') === null ? get('BUILDKITE_BRANCH') : null,
  }
}
