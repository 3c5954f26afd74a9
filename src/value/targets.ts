/**
 * Names of a Release (contract/application.md, Targets), for the server and for its OpenAPI
 * document.
 */
import { idPattern } from './ids.ts'
import { WORKSPACE_NAME } from './manifest.ts'

export const CHANNEL_NAME = /^[a-z][a-z0-9-]{0,62}$/

/** The text between the anchors. */
const within = ({ source }: RegExp): string => source.replace(/^\^|\$$/g, '')

/** Captures the name of the Channel, the name of the Workspace or the Release ID. */
export const TARGET = new RegExp(
  [
    '^(?:environment:default',
    `channel:(${within(CHANNEL_NAME)})`,
    `workspace:(${within(WORKSPACE_NAME)})`,
    `release:(${within(idPattern('rel'))}))$`,
  ].join('|'),
)

/**
 * Releases of one serving policy (environment:default): a runner of each stays warm.
 * @limit Workspaces and Releases: Releases of a serving policy
 */
export const POLICY_RELEASES_MAX = 16
/** Sum of the weights of a serving policy. */
export const WEIGHTS_TOTAL = 10_000
