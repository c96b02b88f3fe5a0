//! Files that a checkout writes in another way than they are stored.

use crate::whole::judge::variant::Variant;

/// UTF-7 has no double quotes, so that this is one string for those who read what is stored.
const UTF_7: &str = "namePrefix: +ACI-x-\nresources:\n- https://h.example/x.yaml?+ACI-\n";

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for attributes in [
        "*.yaml working-tree-encoding=UTF-7\n",
        "* working-tree-encoding=UTF-7\n",
        "kustomization.yaml text working-tree-encoding=utf-7\n",
        "[attr]odd working-tree-encoding=UTF-7\n*.yaml odd\n",
        "*.yaml working-tree-encoding=UTF-7 eol=lf\n",
        "\"kustomization.yaml\" working-tree-encoding=UTF-7\n",
        "**/*.yaml working-tree-encoding=UTF-7\n",
    ] {
        // What begins with `[attr]` counts at the top only, so it is nothing here.
        let variant = Variant::new("attributes", attributes, UTF_7);
        all.push(variant.with(".gitattributes", attributes));
        let below = Variant::new("attributes", format!("below: {attributes}"), "resources: [a]\n");
        all.push(below.with("a/kustomization.yaml", UTF_7).with(".gitattributes", attributes));
        let plugin = UTF_7.replace("resources", "transformers");
        let plugins = Variant::new("attributes", format!("plugins: {attributes}"), plugin);
        all.push(plugins.with(".gitattributes", attributes));
    }
    for attributes in [
        "*.yaml ident\n",
        "*.yaml text eol=crlf\n",
        "*.yaml filter=lfs diff=lfs merge=lfs -text\n",
        "*.yaml export-ignore export-subst\n",
    ] {
        for text in [
            "# $Id$\nresources: [cm.yaml]\nnamePrefix: 'https://$Id$'\n",
            "resources: [\"https://h.example/$Id$\"]\n",
            "resources: [\"https://h.ex\\\n  ample/x.yaml\"]\n",
        ] {
            let variant = Variant::new("attributes", format!("{attributes}{text}"), text);
            all.push(variant.with(".gitattributes", attributes));
        }
    }
    // With `ident`, the colon makes a git URL of it.
    for place in ["a@b$Id$/c", "a@b$Id$/c/d", "git@$Id$/c"] {
        all.push(
            Variant::new("attributes", place, format!("resources: ['{place}']\n"))
                .with(".gitattributes", "*.yaml ident\n")
                .with(format!("{place}/kustomization.yaml"), "resources: []\n"),
        );
    }
    all
}
