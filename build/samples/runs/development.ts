/** Documents about `svc dev`, pages and agents of this machine, and migrations. */
import { DOCS, LONG_TEST, TARGET } from './server.ts'
import type { CommandRun, DocumentRun, Preparation } from './types.ts'

const READY = /http:\/\//
const SERVES: CommandRun = { until: READY, exit: 0 }
const SHOWS: CommandRun = { until: READY, exit: 130 }

/** An `svc dev` of the folder `name`, which serves the Workspace of the other documents. */
const development = (name: string): readonly Preparation[] => [
  `mkdir ${name} && cp -r ../workspace ${name}/workspace`,
  { start: `svc dev --root ${name}`, until: READY },
]

const DEVELOPMENT_KEY: readonly Preparation[] = [
  'svc environments update --purpose development --protection none',
  `sed -i 's/"default"/"chat"/' ../workspace/svc.json`,
]
const MIGRATIONS = (requires: string) => `cat >../workspace/migrations.ts <<'END'
import { migration } from 'svc'

export default {
  addPriority: migration({
    table: 'tasks',
    each: (ctx, task) => (task.priority === undefined ? { priority: 'normal' } : null),
  }),
  addOther: migration({ table: 'tasks', each: () => null }),
}

export const requires = [${requires}]
END`

export const DEVELOPMENT_RUNS: readonly DocumentRun[] = [
  {
    document: 'README.md',
    test: LONG_TEST,
    replace: { 'my-app': 'readme-app' },
    blocks: [{ block: 'the-first-minute 1', commands: { 'svc dev': SERVES } }],
  },
  {
    document: `${DOCS}/client.md`,
    test: LONG_TEST,
    blocks: [{ block: 'set-up 1', replace: { '--workspace app': '--workspace ../workspace' } }],
  },
  {
    document: `${DOCS}/dev.md`,
    test: LONG_TEST,
    replace: { 'my-app': 'dev-app' },
    blocks: [
      { block: 'development-a-workspace-on-your-machine 1', commands: { 'svc dev': SERVES } },
      { block: 'a-phone-in-the-local-network 1', commands: { 'svc dev': SERVES } },
      {
        block: 'commands-in-another-terminal 1',
        before: [{ start: 'svc dev --root dev-app', until: READY }],
        commands: {
          'svc call channels.list': { prints: /general/ },
          'svc watch': { until: /general/, exit: 130 },
          'svc data query': { prints: /general/ },
          'svc logs': { until: /./, exit: 130 },
        },
        after: [{ stop: 'svc dev' }],
      },
      {
        block: 'a-copy-of-production 1',
        before: [
          'mkdir dev-copy && cp -r ../workspace dev-copy/workspace',
          `printf '{"tables":{"messages":{"body":"fake"}},"files":"none"}' >redact.json`,
          'svc backup create',
          'rm -f backup.tar',
          'svc backup download bkp_... --out backup.tar',
        ],
        replace: { 'my-app': 'dev-copy' },
        commands: { 'svc dev': SERVES },
      },
      {
        block: 'a-shared-environment 1',
        before: DEVELOPMENT_KEY,
        replace: { '--scopes workspace': '--scopes workspace --key-out developer.key' },
      },
      {
        block: 'a-shared-environment 2',
        before: [
          'export SERVICE_DEVELOPMENT_KEY="$(cat developer.key)"',
          'cd ../workspace',
          "printf '\\n' >>functions/tasks.ts",
        ],
        commands: { 'svc dev': { until: / synchronized /, exit: 0 } },
        after: [`sed -i 's/"chat"/"default"/' svc.json`, 'cd ../product'],
      },
      {
        block: 'a-shared-environment 3',
        before: [
          'cp -r dev-app/workspace other',
          `sed -i 's/"default"/"other"/' other/svc.json`,
          { start: 'svc dev --root dev-app', until: READY },
          {
            as: 'LOCAL',
            command: 'cat dev-app/workspace/web/_generated/dev.json',
            pattern: /"(http:[^"]+)"/,
          },
        ],
        replace: { 'http://127.0.0.1:3210': 'LOCAL' },
        commands: { SERVICE_DEVELOPMENT_KEY: { until: / synchronized /, exit: 0 } },
      },
    ],
  },
  {
    document: `${DOCS}/hooks.md`,
    test: LONG_TEST,
    before: development('hooks-app'),
    replace: { 'my-app': 'hooks-app' },
    blocks: [
      {
        block: 'locally 3',
        before: [
          { write: 'event.json', sample: 'locally 2' },
          `printf '{"id":"push_1"}' >push.json`,
        ],
      },
    ],
  },
  {
    document: `${DOCS}/console.md`,
    test: LONG_TEST,
    before: development('console-app'),
    replace: { 'my-app': 'console-app' },
    blocks: [
      {
        block: 'console-a-page-of-the-environment-in-your-browser 1',
        commands: { 'svc console --root': SHOWS, 'svc console': SHOWS },
      },
    ],
  },
  {
    document: `${DOCS}/agents.md`,
    test: LONG_TEST,
    before: development('agents-app'),
    replace: { 'my-app': 'agents-app' },
    blocks: [
      {
        block: 'give-a-permission 1',
        commands: {
          'svc mcp allow': { types: 'data:read' },
          'svc mcp permissions': { prints: /data:read/ },
        },
      },
      { block: 'what-an-agent-tried 1' },
    ],
  },
  {
    document: `${DOCS}/migrations.md`,
    test: LONG_TEST,
    before: [`svc data put tasks '{"title":"write"}' ${TARGET}`, MIGRATIONS("'addPriority'")],
    replace: { 'svc release --': 'svc release --no-typecheck --' },
    blocks: [
      {
        block: 'run-it 1',
        commands: {
          'svc release': [{ exit: 8 }, {}],
          'svc migrations status': { prints: /complete/ },
        },
      },
      {
        block: 'when-it-stops 1',
        before: ['svc environments archive', 'svc migrations run addOther'],
        replace: { addPriority: 'addOther' },
        after: ['svc environments restore'],
      },
    ],
  },
  {
    document: `${DOCS}/schema-changes.md`,
    test: LONG_TEST,
    before: [
      `cat >../workspace/migrations.ts <<'END'
import { migration } from 'svc'

export default {
  addLength: migration({ table: 'tasks', each: () => null }),
  textToBody: migration({ table: 'tasks', each: () => null }),
  laterToOpen: migration({ table: 'tasks', each: () => null }),
}
END`,
      'svc release --no-typecheck --channel production',
    ],
    blocks: [
      { block: '2-add-a-field-that-every-document-has 3' },
      { block: '4-rename-a-field 3' },
      { block: '6-remove-a-choice 2' },
    ],
  },
  {
    document: `${DOCS}/containers.md`,
    test: LONG_TEST,
    before: [
      'svc invite --operator-name new --role owner --scope installation ' +
        '--code-out initial-owner.code',
      'export SERVICE_CONFIG_HOME=$PWD/first',
    ],
    blocks: [{ block: 'docker-compose 4', replace: { './app': '../workspace --no-typecheck' } }],
  },
  {
    document: `${DOCS}/importing.md`,
    test: LONG_TEST,
    before: ['cp FIXTURES/convex.zip snapshot.zip', 'cp FIXTURES/pocketbase-0.36.zip backup.zip'],
    replace: { '--out from-': '--out converted-' },
    blocks: [{ block: 'convert 1' }, { block: 'pocketbase 1' }],
  },
]
