/** Documents whose commands act on a server, in the root of its Environment. */
import type { DocumentRun, Preparation } from './types.ts'

export const DOCS = 'src/docs'
const TEST = 'e2e/documents/server.test.ts'
export const LONG_TEST = 'e2e/documents/documents.long.test.ts'
const CODE = 'state/bootstrap/initial-owner.code'
export const TARGET = '--target channel:production'
/** A release without the check of types, which would take most of its time. */
const RELEASE = { 'svc release --': 'svc release --no-typecheck --' }

/** Makes a key for applications, in the variable KEY. */
export const KEY: readonly Preparation[] = [
  'svc clients create --name caller --kind confidential --scopes query,mutation,action,realtime',
  'rm -f caller.key',
  'svc credentials create --client app_... --name caller --key-out caller.key ' +
    '--scopes query,mutation,action,realtime',
  'export KEY="$(cat caller.key)"',
]
/** Makes a grant of an upload, in the variables of the sample. */
const GRANT: readonly Preparation[] = [
  `svc call uploads.grant --url http://127.0.0.1:3210 --key-env KEY ${TARGET} >grant.json`,
  ...['path', 'token'].map((name) => {
    const found = `grep -o '"${name}": *"[^"]*"' grant.json | cut -d '"' -f 4`
    return `export GRANT_${name.toUpperCase()}="$(${found})"`
  }),
]
export const MESSAGE: readonly Preparation[] = [
  `svc data put channels '{"name":"of the message"}' ${TARGET}`,
  'svc data put messages \'{"channel":"channels_...","author":"ana","body":"hi","kind":"text",' +
    `"likes":"0"}' ${TARGET}`,
]
/** Remembers the Release that is bound, and binds another one. */
export const newestAs = (name: string): Preparation => ({
  as: name,
  command: 'svc releases list',
  pattern: /(rel_\w{26})/,
})
export const CHANGED: readonly Preparation[] = [
  newestAs('rel_OLD'),
  'cd ../workspace/functions && line="export const repair$(wc -l <counters.ts) = repair" && ' +
    'echo "$line" >>counters.ts && cd - >/dev/null',
]
export const SECOND_RELEASE: readonly Preparation[] = [
  ...CHANGED,
  'svc release --no-typecheck --channel production',
  newestAs('rel_NEW'),
]
/** Makes an operator that has a session. */
export const operator = (name: string): readonly Preparation[] => [
  `svc invite --operator-name ${name} --role developer --scope environment --root . ` +
    `--code-out ${name}.code`,
  `SERVICE_CONFIG_HOME=$PWD/${name} SVC_CODE="$(cat ${name}.code)" ` +
    'svc login --url http://127.0.0.1:3220 --code-env SVC_CODE',
]

export const SERVER_RUNS: readonly DocumentRun[] = [
  {
    document: `${DOCS}/operators.md`,
    test: TEST,
    blocks: [
      {
        block: 'the-first-owner 1',
        before: [
          'mkdir -p state/bootstrap',
          `svc invite --operator-name first --role owner --scope installation --code-out ${CODE}`,
          'own=$SERVICE_CONFIG_HOME; export SERVICE_CONFIG_HOME=$PWD/first',
        ],
        commands: { 'svc whoami': { prints: /first/ } },
      },
      { block: 'invitations 1', before: ['export SERVICE_CONFIG_HOME=$own'] },
      {
        block: 'sessions 1',
        commands: {
          'svc sessions revoke': {
            before: ['SERVICE_CONFIG_HOME=$PWD/first svc sessions list'],
          },
        },
      },
      { block: 'sessions 2', replace: { '/tmp/job': '$PWD/job' } },
      { block: 'sessions 3' },
      {
        block: 'offboarding 1',
        before: operator('ana'),
        commands: { 'svc operators list': { prints: /ana/ } },
      },
      { block: 'offboarding 2', before: ['svc operators enable ana'] },
    ],
  },
  {
    document: `${DOCS}/configuration.md`,
    test: TEST,
    blocks: [
      {
        block: 'configuration-variables-and-secrets-of-functions 1',
        before: ["printf 'sk_1' > api-key.txt"],
        commands: { 'svc config list': { prints: /API_KEY[\s\S]*GREETING/ } },
      },
      {
        block: 'rotation-of-the-keyring 1',
        before: ['systemctl stop svc-server'],
        after: ['systemctl start svc-server'],
      },
    ],
  },
  {
    document: `${DOCS}/calls.md`,
    test: TEST,
    before: KEY,
    replace: { '--root root': '' },
    blocks: [
      {
        block: 'calls-how-an-application-calls-functions 1',
        commands: { curl: { prints: /"result"/ } },
      },
      {
        block: 'calls-how-an-application-calls-functions 2',
        commands: { 'svc call': { prints: /general/ } },
      },
      { block: 'plain-calls 1', commands: { curl: { prints: /"result"/ } } },
      { block: 'openapi-of-the-functions 1' },
    ],
  },
  {
    document: `${DOCS}/files.md`,
    test: TEST,
    before: ["printf 'png' > logo.png"],
    blocks: [
      {
        block: 'upload 2',
        before: [...KEY, ...GRANT, 'cp logo.png photo.png'],
        commands: { curl: { prints: /"fileId"/ } },
      },
      { block: 'buckets 1', commands: { 'svc buckets list': { prints: /uploads/ } } },
      {
        block: 'files-of-operators 1',
        before: ['svc buckets create pictures'],
        replace: { uploads: 'pictures' },
        commands: {
          'svc files list': { prints: /logo\.png/ },
          'svc files get': { before: ['mv logo.png sent.png'] },
        },
      },
      { block: 'storage-keys 1', replace: { uploads: 'pictures' } },
    ],
  },
  {
    document: `${DOCS}/data.md`,
    test: TEST,
    before: MESSAGE,
    replace: {
      messages_01ARZ3NDEKTSV4RRFFQ69G5FAV: 'messages_...',
      '--expected 12': '--expected VERSION',
    },
    blocks: [
      {
        block: 'read-and-repair 1',
        commands: {
          'svc data query': { prints: /hi/ },
          'svc data put': {
            replace: { general: 'put' },
          },
          'svc data delete': {
            before: [
              {
                as: 'VERSION',
                command: `svc data get messages messages_... ${TARGET} --json`,
                pattern: /"revision": "([0-9]+)"/,
              },
            ],
          },
        },
      },
      { block: 'export 1' },
      { block: 'import 1' },
      { block: 'compact 1' },
    ],
  },
]

/** Documents of the long run, most of which make Releases. */
export const LONG_RUNS: readonly DocumentRun[] = [
  {
    document: `${DOCS}/releases.md`,
    test: LONG_TEST,
    blocks: [
      { block: 'releases-publish-promote-roll-back-retire 1', replace: RELEASE },
      {
        block: 'the-origin-of-a-release 1',
        replace: RELEASE,
        commands: { 'svc releases list': { prints: /rel_/ } },
      },
      { block: 'before-a-release 1' },
      { block: 'the-serving-policy 1', before: SECOND_RELEASE },
      { block: 'rollback 1' },
    ],
  },
  {
    document: `${DOCS}/schema-changes.md`,
    test: LONG_TEST,
    before: ['svc release --no-typecheck --channel production', ...CHANGED],
    replace: RELEASE,
    blocks: [
      { block: 'before-a-release 1' },
      {
        block: '1-add-a-field-that-some-documents-have 2',
        commands: { 'svc serve-policy': { before: [newestAs('rel_NEW')] } },
      },
      {
        block: '3-remove-a-field 2',
        before: [
          'svc promote --channel production --release rel_NEW --expected rel_OLD',
          'svc serve-policy set --releases rel_NEW',
        ],
      },
      { block: '10-add-or-remove-an-index 1' },
    ],
  },
  {
    document: `${DOCS}/endpoints.md`,
    test: LONG_TEST,
    blocks: [{ block: 'mounts 1' }],
  },
  {
    document: `${DOCS}/monitoring.md`,
    test: LONG_TEST,
    replace: { '/var/lib/svc-metrics': '$PWD/svc-metrics', '127.0.0.1:9464': '127.0.0.1:0' },
    blocks: [
      {
        block: 'collect-with-prometheus 1',
        replace: { '--root .': '--root . --code-out prometheus.code' },
      },
      {
        block: 'collect-with-prometheus 2',
        before: ['export SVC_CODE="$(cat prometheus.code)"'],
        commands: { 'svc metrics': { until: /http:/, exit: 0 } },
      },
    ],
  },
  {
    document: `${DOCS}/operations.md`,
    test: LONG_TEST,
    before: KEY,
    blocks: [{ block: 'find-what-is-wrong 1' }, { block: 'rotate-an-application-key 1' }],
  },
  {
    document: `${DOCS}/traces.md`,
    test: LONG_TEST,
    blocks: [{ block: 'turn-traces-on 1' }],
  },
  {
    document: `${DOCS}/scheduling.md`,
    test: LONG_TEST,
    blocks: [{ block: 'which-crons-are-active 1' }],
  },
  {
    document: `${DOCS}/logs.md`,
    test: LONG_TEST,
    blocks: [
      {
        block: 'read 1',
        replace: { req_01J8ZQ4B3K5N7P9R2T4V6X8Z0A: 'req_...' },
        commands: {
          'svc logs --follow': { until: /./, exit: 130 },
          'svc logs --request': { before: ['svc logs --json'] },
        },
      },
      { block: 'archive-and-prune 1' },
    ],
  },
  {
    document: `${DOCS}/actions.md`,
    test: LONG_TEST,
    blocks: [{ block: 'actions-requests-to-other-services 2' }],
  },
  {
    document: `${DOCS}/hooks.md`,
    test: LONG_TEST,
    blocks: [
      {
        block: 'in-production 1',
        before: ["printf 'whsec_1' > stripe-webhook.txt"],
        commands: { 'svc http list': { prints: /payments/ } },
      },
      {
        block: 'failed-deliveries 1',
        before: [
          'curl -fsS http://127.0.0.1:3210/v1/http/payments/stripe ' +
            "-H 'Content-Type: application/json' -d '{}'",
        ],
      },
    ],
  },
  {
    document: `${DOCS}/upgrade.md`,
    test: LONG_TEST,
    blocks: [{ block: 'before 1' }, { block: 'forward 1' }],
  },
]
