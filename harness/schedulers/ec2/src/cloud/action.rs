//! The names of the calls, as Amazon has them: for requests, errors and tests.

/// Declares them, and all of them.
macro_rules! actions {
    ($($name:ident = $action:literal,)*) => {
        $(pub(crate) const $name: &str = $action;)*

        #[cfg(test)]
        pub(crate) const ALL: &[&str] = &[$($name),*];
    };
}

actions! {
    RUN_INSTANCES = "RunInstances",
    DESCRIBE_CAPACITY_RESERVATIONS = "DescribeCapacityReservations",
    TRY_RUN_INSTANCES = "RunInstances with DryRun",
    DESCRIBE_INSTANCES = "DescribeInstances",
    TERMINATE_INSTANCES = "TerminateInstances",
    GET_CONSOLE_OUTPUT = "GetConsoleOutput",
    CREATE_TAGS = "CreateTags",
    DESCRIBE_IMAGES = "DescribeImages",
    DESCRIBE_INSTANCE_TYPES = "DescribeInstanceTypes",
    DESCRIBE_INSTANCE_TYPE_OFFERINGS = "DescribeInstanceTypeOfferings",
    DESCRIBE_SUBNETS = "DescribeSubnets",
    GET_PARAMETER = "GetParameter",
    GET_CALLER_IDENTITY = "GetCallerIdentity",
    CREATE_SECURITY_GROUP = "CreateSecurityGroup",
    AUTHORIZE_INGRESS = "AuthorizeSecurityGroupIngress",
    AUTHORIZE_EGRESS = "AuthorizeSecurityGroupEgress",
    DESCRIBE_SECURITY_GROUPS = "DescribeSecurityGroups",
    DELETE_SECURITY_GROUP = "DeleteSecurityGroup",
    CREATE_PLACEMENT_GROUP = "CreatePlacementGroup",
    DESCRIBE_PLACEMENT_GROUPS = "DescribePlacementGroups",
    DELETE_PLACEMENT_GROUP = "DeletePlacementGroup",
    DESCRIBE_VOLUMES = "DescribeVolumes",
    DELETE_VOLUME = "DeleteVolume",
    PUT_OBJECT = "PutObject",
    GET_OBJECT = "GetObject",
    DELETE_OBJECTS = "DeleteObjects",
    LIST_OBJECTS = "ListObjectsV2",
}

/// The right that a call needs, as a policy names it.
pub(crate) fn right(service: &str, action: &str) -> String {
    let name = match action {
        TRY_RUN_INSTANCES => RUN_INSTANCES,
        LIST_OBJECTS => "ListBucket",
        DELETE_OBJECTS => "DeleteObject",
        action => action,
    };
    format!("{}:{name}", service.to_lowercase())
}
