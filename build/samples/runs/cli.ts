/** The examples of the commands, with a server and with `svc dev` beside it. */
import {
  CHANGED,
  DOCS,
  KEY,
  LONG_TEST,
  MESSAGE,
  newestAs,
  operator,
  SECOND_RELEASE,
  TARGET,
} from './server.ts'
import type { BlockRun, CommandRun, DocumentRun } from './types.ts'

const BROWSER = 'A person logs in at the page; e2e/operators/browser-login.test.ts runs it.'
/** Commands that run until they are interrupted, which some of them report as a failure. */
const SERVES: CommandRun = { until: /http:\/\//, exit: 0 }
const SHOWS: CommandRun = { until: /http:\/\//, exit: 130 }
const FOLLOWS: CommandRun = { until: /./, exit: 130 }
const WATCH = `svc watch messages.list '{"channel":"channels_..."}'`
const WITHOUT_TYPES = {
  'svc build --': 'svc build --no-typecheck --',
  'svc release --': 'svc release --no-typecheck --',
}

const OPERATORS: readonly BlockRun[] = [
  { block: 'svc-invite 2' },
  {
    block: 'svc-login 2',
    before: [
      'svc invite --operator-name new --role owner --scope installation --code-out new.code',
      'own=$SERVICE_CONFIG_HOME; export SERVICE_CONFIG_HOME=$PWD/new',
    ],
    replace: { 'SVC_CODE=...': 'SVC_CODE="$(cat new.code)"' },
    commands: {
      'svc login --url https://manage.example.com --browser': { skip: BROWSER },
      'svc login --url https://manage.example.com --oidc': {
        before: [
          'export SERVICE_CONFIG_HOME=$PWD/job',
          'export SVC_OIDC_TOKEN="$(curl -fsS TOKENS/environment:production)"',
        ],
      },
    },
    after: ['svc whoami', 'export SERVICE_CONFIG_HOME=$own'],
  },
  { block: 'svc-sessions-derive 2' },
  { block: 'svc-sessions-revoke 2' },
  {
    block: 'svc-invitations-show 2',
    before: ['svc invite --operator-name eve --role developer --scope environment --root .'],
  },
  { block: 'svc-invitations-revoke 2' },
  { block: 'svc-operators-show 2', before: operator('ana') },
  { block: 'svc-operators-disable 2' },
  { block: 'svc-operators-enable 2' },
  { block: 'svc-grants-change 2' },
  { block: 'svc-grants-revoke 2' },
  { block: 'svc-audit 2' },
  { block: 'svc-link 2' },
]

const RELEASES: readonly BlockRun[] = [
  {
    block: 'svc-build 2',
    commands: { 'svc build --root . --watch': { until: /Built/, exit: 0 } },
  },
  { block: 'svc-codegen 2', replace: { '--workspace app': '--workspace ../workspace' } },
  {
    block: 'svc-publish 2',
    before: [
      `sed -i 's/"default"/"second"/' ../workspace/svc.json`,
      'svc build --root . --no-typecheck --out app.svcpkg',
    ],
    after: [`sed -i 's/"second"/"default"/' ../workspace/svc.json`],
  },
  { block: 'svc-diff 2', before: CHANGED },
  { block: 'svc-release 2', replace: WITHOUT_TYPES },
  { block: 'svc-promote 2', replace: { '--channel production': '--channel first' } },
  {
    block: 'svc-rollback 2',
    before: SECOND_RELEASE,
    replace: { '--expected rel_...': '--expected rel_NEW', '--to rel_...': '--to rel_OLD' },
  },
  {
    block: 'svc-serve-policy-set 2',
    replace: { 'rel_...=9500,rel_...': 'rel_OLD=9500,rel_NEW' },
    after: ['svc serve-policy set --releases rel_OLD'],
  },
  {
    block: 'svc-releases-retire 2',
    before: [
      'svc promote --channel production --release rel_NEW --expected rel_OLD',
      ...SECOND_RELEASE,
      'svc serve-policy set --releases rel_NEW',
    ],
    replace: { 'rel_...': 'rel_OLD' },
  },
]

const MIGRATIONS = `cat >../workspace/migrations.ts <<'END'
import { migration } from 'svc'

export default {
  addPriority: migration({ table: 'tasks', each: () => ({ priority: 'normal' }) }),
  addLabel: migration({ table: 'tasks', each: () => ({ priority: 'low' }) }),
}
END`
/** A migration of an archived Environment waits, so that it can be paused. */
const WAITING = { addPriority: 'addLabel' }

const SCHEDULES: readonly BlockRun[] = [
  {
    block: 'svc-migrations-list 2',
    before: [
      MIGRATIONS,
      'svc release --no-typecheck --channel production',
      newestAs('rel_NEW'),
      `svc data put tasks '{"title":"write"}' ${TARGET}`,
    ],
    replace: { 'rel_...': 'rel_NEW' },
  },
  { block: 'svc-migrations-run 2' },
  {
    block: 'svc-migrations-status 2',
    commands: { 'svc migrations': { prints: /complete/ } },
  },
  {
    block: 'svc-migrations-pause 2',
    before: ['svc environments archive', 'svc migrations run addLabel'],
    replace: WAITING,
  },
  { block: 'svc-migrations-resume 2', replace: WAITING },
  {
    block: 'svc-migrations-cancel 2',
    replace: WAITING,
    after: ['svc environments restore'],
  },
  { block: 'svc-crons-list 2', commands: { 'svc crons': { prints: /digest/ } } },
  { block: 'svc-crons-enable 2' },
  { block: 'svc-crons-disable 2' },
  { block: 'svc-crons-run 2' },
  {
    block: 'svc-scheduled-list 2',
    before: [`svc call tasks.remind --operator ${TARGET}`],
    commands: { 'svc scheduled list': { prints: /sch_/ } },
  },
  {
    block: 'svc-scheduled-cancel 2',
    before: [
      {
        as: 'sch_PENDING',
        command: 'svc scheduled list',
        pattern: /(sch_\w{26})\s+(?:pending|scheduled|waiting)/,
      },
    ],
    replace: { 'sch_...': 'sch_PENDING' },
  },
  { block: 'svc-http-mount 2' },
  { block: 'svc-http-list 2', commands: { 'svc http list': { prints: /payments/ } } },
  {
    block: 'svc-http-deliveries 2',
    before: [
      'curl -fsS http://127.0.0.1:3210/v1/http/payments/stripe ' +
        "-H 'Content-Type: application/json' -d '{}'",
    ],
  },
  { block: 'svc-http-delivery 2' },
  {
    block: 'svc-http-replay 2',
    before: ['until svc http deliveries payments --state failed | grep sch_; do sleep 0.2; done'],
  },
  { block: 'svc-http-unmount 2' },
]

const FILES: readonly BlockRun[] = [
  { block: 'svc-buckets-create 2' },
  { block: 'svc-buckets-update 2' },
  { block: 'svc-buckets-keys-issue 2' },
  { block: 'svc-buckets-keys-rotate 2' },
  { block: 'svc-buckets-keys-revoke 2' },
  { block: 'svc-files-put 2', before: ["printf 'png' >logo.png"] },
  { block: 'svc-files-list 2' },
  { block: 'svc-files-get 2', before: ['rm logo.png'], after: ['test -s logo.png'] },
  { block: 'svc-files-delete 2' },
]

const DATA: readonly BlockRun[] = [
  { block: 'svc-functions 2', commands: { 'svc functions': { prints: /messages\.list/ } } },
  { block: 'svc-functions-stats 2' },
  { block: 'svc-tables 2' },
  { block: 'svc-data-tables 2' },
  {
    block: 'svc-data-query 2',
    before: MESSAGE,
    commands: { 'svc data query': { prints: /messages_/ } },
  },
  { block: 'svc-data-get 2' },
  { block: 'svc-data-put 2' },
  { block: 'svc-data-export 2' },
  { block: 'svc-data-delete 2' },
  { block: 'svc-data-import 2' },
  { block: 'svc-data-compact 2' },
]

const IMPORTS: readonly BlockRun[] = [
  { block: 'svc-import-convex 2', before: ['cp FIXTURES/convex.zip snapshot.zip'] },
  {
    block: 'svc-import-pocketbase 2',
    before: ['cp FIXTURES/pocketbase-0.36.zip backup.zip'],
  },
  { block: 'svc-import-parse 2', before: ['cp FIXTURES/parse-8.6.zip classes'] },
  {
    block: 'svc-import-firebase 2',
    before: ['cp FIXTURES/firebase-emulator.zip exports'],
    commands: {
      'svc import firebase exports --out from-firebase --table': {
        before: [
          'rm -r exports from-firebase && mkdir exports',
          `printf '{"messages":{"room":{"first":{"text":"hi"}}}}' > exports/database.json`,
        ],
      },
    },
  },
  { block: 'svc-import-files 2' },
  {
    block: 'svc-import-verify 2',
    before: [
      'mkdir ../imported && cp from-convex/schema.ts ../imported',
      'svc release --workspace ../imported --no-typecheck --channel imported',
      'svc data import users from-convex/data/users.jsonl --target channel:imported',
    ],
    replace: { 'channel:production': 'channel:imported' },
  },
]

const OBSERVATION: readonly BlockRun[] = [
  { block: 'svc-doctor 2' },
  {
    block: 'svc-metrics 2',
    replace: { '127.0.0.1:9464': '127.0.0.1:0' },
    commands: { svc: SERVES },
  },
  { block: 'svc-logs 2', commands: { 'svc logs --follow': FOLLOWS } },
  { block: 'svc-logs-prune 2' },
  { block: 'svc-backup-keygen 2', replace: { 'backup.key': 'another.key' } },
  {
    block: 'svc-backup-create 2',
    commands: {
      'svc backup create --recipient': {
        skip: 'The settings of the server name the recipient; the guide of backups runs it.',
      },
    },
  },
  { block: 'svc-backup-list 2' },
  { block: 'svc-backup-show 2' },
  {
    block: 'svc-backup-download 2',
    before: ['until svc backup show bkp_... --json | grep -q complete; do sleep 0.2; done'],
  },
  {
    block: 'svc-backup-verify 2',
    before: ['mkdir opened && tar -xf backup.tar -C opened'],
    replace: { '/backups': 'opened' },
  },
]

const APPLICATIONS: readonly BlockRun[] = [
  { block: 'svc-clients-create 2' },
  { block: 'svc-credentials-create 2' },
  { block: 'svc-credentials-rotate 2' },
  { block: 'svc-config-set 2', before: ["printf 'sk_1' >api-key.txt"] },
  { block: 'svc-config-unset 2' },
  { block: 'svc-environments-update 2' },
]

/** A key that `svc dev --attach` takes. */
const DEVELOPMENT_KEY = [
  'svc environments update --purpose development --protection none',
  'svc clients create --name developers --kind development',
  'svc credentials create --client app_... --name dev --scopes workspace --key-out dev.key',
  'export DEV_KEY="$(cat dev.key)"',
]

const DEVELOPMENT: readonly BlockRun[] = [
  {
    block: 'svc-init 2',
    replace: { './my-app-root': './init-root', '--workspace ./my-app': '--workspace ./init-app' },
  },
  {
    block: 'svc-dev 2',
    before: [
      'mkdir my-app && cp -r ../workspace my-app/workspace',
      `printf '[{"function":"channels.create","arguments":{"name":"a","author":"b"}}]' >seed.json`,
      `printf '{"tables":{"messages":{"body":"fake"}},"files":"none"}' >redact.json`,
      ...DEVELOPMENT_KEY,
    ],
    commands: {
      'svc dev --root ./my-app --from': {
        before: ['mkdir my-copy && cp -r ../workspace my-copy/workspace'],
        replace: { './my-app': './my-copy' },
        ...SERVES,
      },
      'svc dev --attach': {
        before: ['cd ../workspace', `sed -i 's/"default"/"chat"/' svc.json`],
        until: / synchronized /,
        exit: 0,
      },
      'svc dev --root ./my-app --reset': SERVES,
      'svc dev --root ./my-app': SERVES,
    },
  },
  { block: 'svc-freeze 2', after: ['cd ../product'] },
  {
    block: 'svc-dev-hook 2',
    before: [
      { start: 'svc dev --root ./my-app', until: /http:\/\// },
      'cd my-app',
      `printf '{"id":"evt_1"}' >event.json`,
      `printf '{"id":"push_1"}' >push.json`,
    ],
    after: ['cd ..'],
  },
  {
    block: 'svc-console 2',
    commands: { 'svc console --root': SHOWS, 'svc console': SHOWS },
  },
  {
    block: 'svc-call 2',
    before: [
      ...KEY,
      'export APP_KEY=$KEY',
      'cd my-app',
      `svc call channels.create '{"name":"call","author":"me"}' --dev`,
    ],
    commands: {
      'svc call messages.send': {
        before: ['cd ..', `svc data query channels ${TARGET}`],
      },
    },
  },
  {
    block: 'svc-watch 2',
    commands: {
      [`${WATCH} --dev`]: {
        before: ['cd my-app', 'svc call channels.list --dev'],
        until: /body/,
        exit: 130,
      },
      [`${WATCH} \\`]: {
        before: ['cd ..', `svc data query channels ${TARGET}`],
        until: /./,
        exit: 130,
      },
    },
  },
  {
    block: 'svc-openapi 2',
    commands: {
      'svc openapi --dev': { before: ['cd my-app'] },
      'svc openapi --url': { before: ['cd ..'] },
    },
  },
  { block: 'svc-mcp 2' },
  {
    block: 'svc-mcp-allow 2',
    commands: {
      'svc mcp allow data:read': { types: 'data:read' },
      'svc mcp allow data:write': { types: 'data:write' },
    },
  },
  { block: 'svc-mcp-deny 2' },
  { block: 'svc-mcp-rejections 2' },
  { block: 'svc-docs 2', commands: { 'svc docs --serve': SHOWS } },
  {
    block: 'completion-and-manual-pages 1',
    before: [
      'mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions',
    ],
  },
  { block: 'svc-completion 2' },
]

const CLI_RUN: DocumentRun = {
  document: `${DOCS}/cli.md`,
  test: LONG_TEST,
  blocks: [
    ...OPERATORS,
    ...RELEASES,
    ...SCHEDULES,
    ...FILES,
    ...DATA,
    ...IMPORTS,
    ...OBSERVATION,
    ...APPLICATIONS,
    ...DEVELOPMENT,
    { block: 'svc-buckets-archive 2' },
  ],
}

const CI_RUN: DocumentRun = {
  document: `${DOCS}/ci.md`,
  test: LONG_TEST,
  blocks: [
    { block: 'invite-the-job-once 1', replace: { 'environment:production': 'environment:guide' } },
    {
      block: 'releases-from-ci-without-stored-secrets 1',
      before: [
        'export SERVICE_CONFIG_HOME=$PWD/ci SVC_OIDC_TOKEN="$(curl -fsS TOKENS/environment:guide)"',
      ],
      replace: { '--workspace .': '--workspace ../workspace --no-typecheck' },
    },
  ],
}

export const CLI_RUNS: readonly DocumentRun[] = [CLI_RUN, CI_RUN]
