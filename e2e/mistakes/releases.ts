/** Roots, Workspaces, packages, Releases and Channels that do not fit. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const RELEASES: readonly Situation[] = [
  {
    situation: 'the root exists already',
    run: argv`svc init --root {root} --workspace {workspace}`,
    exit: 4,
    message: [
      'svc: CLIENT_ROOT_EXISTS: The directory is already a root. {root} has a ' + 'service.json.',
      '  Use the existing root, or specify another directory.',
    ],
  },
  {
    situation: 'the address of applications is invalid',
    run: argv`svc init --root {missing} --workspace {workspace} --listen 3210`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --listen needs an address such as 127.0.0.1:3210.',
      '  See `svc init --help`.',
    ],
  },
  {
    situation: 'a Function has a syntax error',
    run: argv`svc build --root {root} --workspace {broken}`,
    exit: 8,
    message: [
      'svc: WORKSPACE_INVALID: The Workspace could not be built.',
      'functions/more.ts:2:7',
      '  Expected "}" but found ";".',
      'functions/more.ts:3:1',
      '  Unexpected }.',
      '  Correct the named file at the named line.',
    ],
  },
  {
    situation: 'the Workspace does not exist',
    run: argv`svc build --root {root} --workspace {missing}`,
    exit: 8,
    message: [
      'svc: WORKSPACE_INVALID: The Workspace could not be built.',
      '{missing}',
      '  There is no such directory.',
      '  Correct the named file at the named line.',
    ],
  },
  {
    situation: 'the Workspace has no schema',
    run: argv`svc build --root {root} --workspace {empty}`,
    exit: 8,
    message: [
      'svc: WORKSPACE_INVALID: The Workspace could not be built.',
      'schema.ts',
      '  There is no such file in {empty}.',
      '  Write it with: export default defineSchema({}), or create a Workspace with `svc ' +
        'init`.',
      '  Correct the named file at the named line.',
    ],
  },
  {
    situation: 'a Function has no clients',
    run: argv`svc build --root {root} --workspace {second} --no-typecheck`,
    exit: 0,
    message: [
      'warning: functions/more.ts:2',
      '  more.one has no clients, so no application can call it.',
      '  Add clients: ["public"], or write internalQuery.',
    ],
  },
  {
    situation: 'the package file does not exist',
    run: argv`svc publish --root {root} --package {missing}`,
    exit: 1,
    message: [
      'svc: CLIENT_FILE_FAILED: A local file could not be read or written. The file ' +
        '{missing} does not exist.',
      '  Check the path, its permissions and the free space of its disk.',
    ],
  },
  {
    situation: 'the package file is damaged',
    run: argv`svc publish --root {root} --package {damagedPackage}`,
    exit: 8,
    message: [
      'svc: CLIENT_PACKAGE_INVALID: The package cannot be published. Expected the length ' +
        'that its head states (package).',
      '  Build a package with `svc build --out FILE` in a root of the same Project.',
    ],
  },
  {
    situation: 'the package belongs to another Project',
    run: argv`svc publish --root {root} --package {foreignPackage}`,
    exit: 8,
    message: [
      'svc: CLIENT_PACKAGE_INVALID: The package cannot be published. It belongs to ' +
        '{foreignProject}, the root to {projectId}.',
      '  Build a package with `svc build --out FILE` in a root of the same Project.',
    ],
  },
  {
    situation: 'two sources of a package are given',
    run: argv`svc publish --root {root} --package {secondPackage} --workspace {workspace}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Give one of --package, --manifest with --artifact, and ' + '--workspace.',
      '  See `svc --help`.',
    ],
  },
  {
    situation: 'the head of the Workspace has changed',
    run: argv`
      svc publish --root {root} --package {secondPackage} --expected-head {unknownRevision}
    `,
    exit: 4,
    message: [
      'svc: PRODUCT_CAS_CONFLICT: The current state is not the one that the request ' +
        'expects. The head of the Workspace is not {unknownRevision}.',
      '  Read the head with `svc status`, check what was published, then publish again.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Release to validate is unknown',
    run: argv`svc release --root {root} --release {unknownRelease}`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  releaseId {unknownRelease}: a Release of this Environment',
      '  Run `svc releases list` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Release to promote is unknown',
    run: argv`svc promote --root {root} --channel production --release {unknownRelease}`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  releaseId {unknownRelease}: a Release of this Environment',
      '  Run `svc releases list` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Release to promote is not validated',
    run: argv`svc promote --root {root} --channel production --release {published}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  releaseId {published}: a validated Release; this one is published',
      '  Run `svc release --release {published}` to validate it, then repeat the command.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Channel is bound to another Release than expected',
    run: argv`svc promote --root {root} --channel production --release {release} --expected empty`,
    exit: 4,
    message: [
      'svc: PRODUCT_CAS_CONFLICT: The current state is not the one that the request ' +
        'expects. production is bound to {release}.',
      '  Read the current state with `svc status` or `svc config list`, then ' +
        'repeat the change from there.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Channel to roll back does not exist',
    run: argv`svc rollback --root {root} --channel canary --expected {release} --to {release}`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  channel canary: a Channel that is bound',
      '  Run `svc status` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Channel was never bound to the target of a rollback',
    run: argv`svc rollback --root {root} --channel production --expected {release} --to {release}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  targetReleaseId {release}: an earlier Release of the history of the Channel',
      '  Choose an earlier Release of the history that `svc status` shows.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Release to retire is in use',
    run: argv`svc releases retire --root {root} --release {release}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  releaseId {release}: not bound to the Channel production',
      '  Remove the uses that `svc releases list` shows, then retire the Release.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Release of a policy is not validated',
    run: argv`svc serve-policy set --root {root} --releases {published}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  releases[0].releaseId {published}: a validated Release; this one is published',
      '  Read the state with `svc status`, then decide whether to repeat the change.',
      '  request {request}',
    ],
  },
]
