/** Documents whose commands act on a server, in the root of its Environment. */
import type { DocumentRun } from './types.ts'

const DOCS = 'src/docs'
const TEST = 'e2e/documents/server.test.ts'
const INVITE = 'svc invite --role owner --scope installation'
const CODE = 'state/bootstrap/initial-owner.code'

export const SERVER_RUNS: readonly DocumentRun[] = [
  {
    document: `${DOCS}/operators.md`,
    test: TEST,
    blocks: [
      {
        block: 'the-first-owner 1',
        before: ['mkdir -p state/bootstrap', `${INVITE} --operator-name first --code-out ${CODE}`],
        commands: { 'svc whoami': { prints: /first/ } },
      },
      { block: 'invitations 1' },
    ],
  },
  {
    document: `${DOCS}/scheduling.md`,
    test: TEST,
    blocks: [{ block: 'which-crons-are-active 1' }],
  },
  {
    document: `${DOCS}/configuration.md`,
    test: TEST,
    blocks: [
      {
        block: 'configuration-variables-and-secrets-of-functions 1',
        before: ["printf 'sk_1' > api-key.txt"],
        commands: { 'svc config list': { prints: /GREETING[^]*API_KEY|API_KEY[^]*GREETING/ } },
      },
    ],
  },
  {
    document: `${DOCS}/files.md`,
    test: TEST,
    blocks: [{ block: 'buckets 1', commands: { 'svc buckets list': { prints: /uploads/ } } }],
  },
  {
    document: `${DOCS}/releases.md`,
    test: TEST,
    blocks: [
      { block: 'releases-publish-promote-roll-back-retire 1' },
      {
        block: 'the-origin-of-a-release 1',
        commands: { 'svc releases list': { prints: /rel_/ } },
      },
      { block: 'before-a-release 1' },
    ],
  },
  {
    document: `${DOCS}/logs.md`,
    test: TEST,
    blocks: [{ block: 'archive-and-prune 1' }],
  },
  {
    document: `${DOCS}/data.md`,
    test: TEST,
    blocks: [{ block: 'export 1' }, { block: 'compact 1' }],
  },
  {
    document: `${DOCS}/actions.md`,
    test: TEST,
    blocks: [{ block: 'actions-requests-to-other-services 2' }],
  },
  {
    document: `${DOCS}/hooks.md`,
    test: TEST,
    blocks: [
      {
        block: 'in-production 1',
        before: ["printf 'whsec_1' > stripe-webhook.txt"],
        commands: { 'svc http list': { prints: /payments/ } },
      },
    ],
  },
  {
    document: `${DOCS}/upgrade.md`,
    test: TEST,
    blocks: [{ block: 'before 1' }, { block: 'forward 1' }],
  },
]
